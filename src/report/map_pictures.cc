// A map as a drawing and as pixels.

#include <fmt/core.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "report/map_result.h"
#include "report/markup.h"
#include "tensor/error.h"

namespace regard {
namespace {

constexpr int kSteps = 20;
constexpr double kSide = 640, kPictureMargin = 16, kLine = 20;

// 0 for what is not drawn.
int step(double heat) { return heat > 0 ? std::clamp(static_cast<int>(std::lround(heat * kSteps)), 1, kSteps) : 0; }

std::string rules(Background background) {
  std::string text;
  for (int i = 1; i <= kSteps; ++i)
    text += fmt::format(".m{}{{fill:{}}}", i, markup_colour(shade(static_cast<double>(i) / kSteps, background).paper));
  return text + '\n';
}

}  // namespace

void write_svg(Output& out, const MapResult& result) {
  const TileMap& map = result.map;
  const std::int64_t height = map.cells.shape()[0], width = map.cells.shape()[1];
  const double cell = kSide / static_cast<double>(std::max(width, height));
  const double tall = cell * static_cast<double>(height), wide = std::max(cell * static_cast<double>(width), 420.0);
  const std::string title = markup_text(fmt::format("{}: layer {} head {}, {} per cell", result.model.name,
                                                    map.request.layer, map.request.head, name(map.request.pooling)));
  out.write(
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
                  "height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n<style>\n",
                  wide + 2 * kPictureMargin, tall + 2 * kPictureMargin + 3 * kLine, title));
  out.write("text{font:14px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1f2328}.page{fill:#fff}\n" +
            rules(Background::light) + "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}\n" +
            rules(Background::dark) + "}\n</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
  out.write(fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kPictureMargin, kPictureMargin + 14, title));
  out.write(fmt::format("<text x=\"{}\" y=\"{}\">rows {} to {} down, keys {} to {} across; largest {:.3g}</text>\n",
                        kPictureMargin, kPictureMargin + kLine + 14, map.rows.front(), map.rows.back() - 1,
                        map.keys.front(), map.keys.back() - 1, largest_cell(map)));
  out.write(fmt::format("<g transform=\"translate({} {}) scale({:.6g})\" shape-rendering=\"crispEdges\">\n",
                        kPictureMargin, kPictureMargin + 2.5 * kLine, cell));
  // One path per shade, of runs of equal cells.
  const Tensor<float, 2> heat = heats(map);
  std::array<std::string, kSteps + 1> paths;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width;) {
      const int shade = step(heat(y, x));
      std::int64_t end = x + 1;
      while (end < width && step(heat(y, end)) == shade) ++end;
      if (shade > 0) paths[shade] += fmt::format("M{} {}h{}v1h-{}z", x, y, end - x, end - x);
      x = end;
    }
  }
  for (int i = 1; i <= kSteps; ++i)
    if (!paths[i].empty()) out.write(fmt::format("<path class=\"m{}\" d=\"{}\"/>\n", i, paths[i]));
  out.write("</g>\n</svg>\n");
}

void write_png(Output& out, const MapResult& result) {
  const std::int64_t height = result.map.cells.shape()[0], width = result.map.cells.shape()[1];
  const Tensor<float, 2> heat = heats(result.map);
  std::vector<std::uint8_t> pixels;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const Colour colour = shade(heat(y, x), Background::light).paper;
      pixels.insert(pixels.end(), {colour.red, colour.green, colour.blue});
    }
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(bytes, '\0');
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels.data(), 0, nullptr) == 0)
    throw Error(ErrorCode::io, fmt::format("the picture could not be made: {}", image.message));
  out.write({file.data(), bytes});
}

}  // namespace regard
