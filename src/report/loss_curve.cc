#include "report/loss_curve.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace regard {

std::vector<double> loss_stretches(std::span<const float> losses, std::int64_t columns) {
  const std::int64_t n = std::ssize(losses);
  columns = std::min(columns, n);
  std::vector<double> means;
  for (std::int64_t c = 0; c < columns; ++c) {
    const std::int64_t begin = c * n / columns, end = (c + 1) * n / columns;
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += losses[i];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  return means;
}

std::vector<Line> loss_lines(std::span<const float> losses, int width, int height) {
  constexpr int kSide = 9;
  const std::vector<double> means = loss_stretches(losses, std::max(1, width - kSide));
  if (means.empty()) return {};
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  const double range = std::max(*high - *low, 1e-12);
  static constexpr const char* kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<Line> lines;
  for (int row = height - 1; row >= 0; --row) {
    Line line;
    const bool top = row == height - 1, bottom = row == 0;
    line.push_back(piece(top      ? fmt::format("{:8.3f} ", *high)
                         : bottom ? fmt::format("{:8.3f} ", *low)
                                  : std::string(kSide, ' '),
                         {.faint = true}));
    std::string signs;
    for (const double mean : means) {
      // The lowest column still shows one eighth.
      const double filled = 1 + (mean - *low) / range * (8 * height - 1) - 8 * row;
      signs += kEighths[static_cast<int>(std::clamp(std::round(filled), 0.0, 8.0))];
    }
    line.push_back(piece(signs));
    lines.push_back(std::move(line));
  }
  return lines;
}

void write_loss_svg(Output& out, std::span<const float> losses) {
  constexpr double kWidth = 720, kHeight = 360, kLeft = 64, kRight = 16, kTop = 20, kBottom = 48;
  const std::vector<double> means = loss_stretches(losses, 400);
  const double high = means.empty() ? 1 : std::max(*std::max_element(means.begin(), means.end()), 1e-12);
  const auto x = [&](double way) { return kLeft + way * (kWidth - kLeft - kRight); };
  const auto y = [&](double loss) { return kHeight - kBottom - loss / high * (kHeight - kTop - kBottom); };
  out.write(
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
                  "font-family=\"sans-serif\" font-size=\"12\">\n<title>loss of {2} steps</title>\n"
                  "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
                  kWidth, kHeight, losses.size()));
  for (int tick = 0; tick <= 4; ++tick) {
    const double loss = high * tick / 4, step = static_cast<double>(losses.size()) * tick / 4;
    out.write(fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#d0d7de\"/>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#57606a\">{:.2f}</text>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#57606a\">{:.0f}</text>\n",
        x(0), x(1), y(loss), y(loss), x(0) - 6, y(loss) + 4, loss, x(tick / 4.0), kHeight - kBottom + 18, step));
  }
  out.write(
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#24292f\">step</text>\n"
                  "<text x=\"16\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#24292f\" "
                  "transform=\"rotate(-90 16 {:.1f})\">loss (nats)</text>\n<polyline fill=\"none\" "
                  "stroke=\"#0969da\" stroke-width=\"1.5\" points=\"",
                  x(0.5), kHeight - 10, kHeight / 2, kHeight / 2));
  for (std::size_t i = 0; i < means.size(); ++i)
    out.write(fmt::format("{:.1f},{:.1f} ", x((static_cast<double>(i) + 0.5) / static_cast<double>(means.size())),
                          y(means[i])));
  out.write("\"/>\n</svg>\n");
}

}  // namespace regard
