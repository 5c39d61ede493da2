// A step of the lesson in the terminal.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/lesson_report.h"
#include "report/phrases.h"
#include "report/shaded_text.h"
#include "report/wrapped_text.h"
#include "text/display.h"

namespace regard {
namespace {

constexpr int kWidestLesson = 92, kBar = 30, kHeading = 11, kNarrow = 4;
constexpr double kHottest = 0.6;  // of a matrix's largest number

class PageWriter {
 public:
  PageWriter(Page& page, const LessonPageOptions& options)
      : page_(page), language_(options.language), width_(std::min(options.width, kWidestLesson)) {}

  void operator()(const LessonText& text) {
    add_wrapped_text(page_, text.in(language_), width_);
    page_.add_line();
  }

  void operator()(const Table& table) {
    caption(table.caption);
    std::vector<std::vector<std::string>> cells(1);
    for (const LessonText& column : table.columns) cells[0].push_back(column.in(language_));
    for (const auto& row : table.rows) {
      cells.emplace_back();
      for (const Table::Cell& cell : row) {
        const auto* text = std::get_if<LessonText>(&cell);
        cells.back().push_back(text ? text->in(language_) : std::get<Number>(cell).both());
      }
    }
    // Headings go over several lines where that makes the table narrower.
    std::vector<int> widths(table.columns.size(), 0);
    for (std::size_t r = 1; r < cells.size(); ++r)
      for (std::size_t i = 0; i < cells[r].size(); ++i)
        widths[i] = std::max(widths[i], columns(std::string_view(cells[r][i])));
    std::vector<std::vector<std::string>> headings;
    std::size_t height = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], std::min(columns(std::string_view(cells[0][i])), kHeading));
      headings.push_back(wrapped(cells[0][i], widths[i]));
      for (const std::string& line : headings.back()) widths[i] = std::max(widths[i], columns(std::string_view(line)));
      height = std::max(height, headings.back().size());
    }
    const auto put = [&](const auto& cell_of, std::size_t count, Style style) {
      std::string line = " ";
      for (std::size_t i = 0; i < count; ++i) line += " " + padded(cell_of(i), widths[i], i > 0) + " ";
      page_.add_line(line.substr(0, line.find_last_not_of(' ') + 1), style);
    };
    for (std::size_t y = 0; y < height; ++y)
      put(
          [&](std::size_t i) {
            const std::size_t above = height - headings[i].size();
            return y >= above ? headings[i][y - above] : std::string();
          },
          widths.size(), kFaint);
    for (std::size_t r = 1; r < cells.size(); ++r) put([&](std::size_t i) { return cells[r][i]; }, cells[r].size(), {});
    page_.add_line();
  }

  void operator()(const MatrixRow& row) {
    caption(row.caption);
    // Side by side as far as they fit.
    for (std::size_t begin = 0; begin < row.matrices.size();) {
      std::vector<std::vector<Line>> drawn;
      std::vector<int> widths;
      int used = 2;
      std::size_t end = begin;
      for (; end < row.matrices.size(); ++end) {
        std::vector<Line> lines = matrix(row.matrices[end]);
        int width = 0;
        for (const Line& line : lines) width = std::max(width, columns(line));
        if (end > begin && used + width + 4 > width_) break;
        used += width + 4;
        drawn.push_back(std::move(lines));
        widths.push_back(width);
      }
      std::size_t height = 0;
      for (const auto& lines : drawn) height = std::max(height, lines.size());
      for (std::size_t y = 0; y < height; ++y) {
        Line& line = page_.add_line("  ");
        for (std::size_t i = 0; i < drawn.size(); ++i) {
          int left = widths[i] + 4;
          if (y < drawn[i].size()) {
            left -= columns(drawn[i][y]);
            for (Piece& one : drawn[i][y]) line.push_back(std::move(one));
          }
          if (i + 1 < drawn.size()) line.push_back(piece(std::string(static_cast<std::size_t>(left), ' ')));
        }
      }
      page_.add_line();
      begin = end;
    }
  }

  void operator()(const ReadsPicture& picture) {
    caption(picture.caption);
    const int name = widest(picture.readers), key = widest(picture.keys);
    for (std::size_t r = 0; r < picture.readers.size(); ++r)
      for (std::size_t s = 0; s < picture.keys.size(); ++s) {
        const Number& weight = picture.weights(static_cast<std::int64_t>(r), static_cast<std::int64_t>(s));
        page_.add_line(fmt::format("  {} ← {}  {}", padded(s == 0 ? picture.readers[r] : "", name),
                                   padded(picture.keys[s], key), bar_and_number(weight, 1)));
      }
    page_.add_line();
  }

  void operator()(const BarChart& chart) {
    caption(chart.caption);
    const int label = widest(chart.labels);
    for (const auto& [name, numbers] : chart.series) {
      page_.add_line("  " + name.in(language_), kFaint);
      double largest = 0;
      for (const Number& number : numbers.items) largest = std::max(largest, std::fabs(number.value));
      for (std::size_t i = 0; i < chart.labels.size(); ++i)
        page_.add_line(
            fmt::format("  {}  {}", padded(chart.labels[i], label), bar_and_number(numbers.items[i], largest)));
    }
    page_.add_line();
  }

  void operator()(const LineChart& chart) {
    caption(chart.caption);
    double low = INFINITY, high = -INFINITY;
    const auto height = [&](double y) { return chart.log_y ? std::log(y) : y; };
    for (const LineChart::Series& series : chart.series)
      for (const double y : series.y)
        if (std::isfinite(height(y))) low = std::min(low, height(y)), high = std::max(high, height(y));
    if (!chart.log_y) low = std::min(low, 0.0);
    for (const LineChart::Series& series : chart.series) {
      page_.add_line("  " + series.name.in(language_), kFaint);
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        const double share = high > low ? (height(series.y[i]) - low) / (high - low) : 0;
        page_.add_line(fmt::format("  {} {}  {}{}", chart.x.in(language_), padded(decimal(series.x[i], 6), 6, true),
                                   padded(bar(std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0, kBar), kBar + 1),
                                   decimal(series.y[i])));
      }
    }
    page_.add_line();
  }

  void operator()(const FlowChart& chart) {
    caption(chart.caption);
    std::string text;
    for (const auto& [label, detail] : chart.boxes)
      text += (text.empty() ? "" : " → ") + label.in(language_) + " " + detail;
    add_wrapped_text(page_, text, width_ - 2, 2);
    page_.add_line();
  }

  void operator()(const Exploration& explore) {
    const bool chinese = language_ == Language::chinese;
    std::string names;
    for (const Slider& slider : explore.sliders)
      names += (names.empty() ? "" : chinese ? "、" : ", ") + slider.label.in(language_);
    add_wrapped_text(page_,
                     (chinese ? "可以动手的部分（滑块：" + names + "）在网页里：regard lesson -o lesson.html"
                              : "To be moved in the page, regard lesson -o lesson.html, with sliders: " + names),
                     width_, 0, kFaint);
    page_.add_line();
  }

  void operator()(const Exercise& exercise) {
    add_wrapped_text(page_, exercise.question.in(language_), width_);
    for (const LessonText& hint : exercise.hints)
      add_wrapped_text(page_, (language_ == Language::chinese ? "提示：" : "Hint: ") + hint.in(language_), width_ - 2,
                       2, kFaint);
    page_.add_line();
  }

 private:
  void caption(const LessonText& text) { add_wrapped_text(page_, text.in(language_), width_, 0, {.bold = true}); }

  static int widest(const std::vector<std::string>& names) {
    int width = 0;
    for (const std::string& name : names) width = std::max(width, columns(std::string_view(name)));
    return width;
  }

  static std::string bar_and_number(const Number& number, double largest) {
    const double share = largest > 0 ? std::fabs(number.value) / largest : 0;
    return padded(bar(std::clamp(share, 0.0, 1.0), kBar), kBar + 1) + number.both();
  }

  std::vector<Line> matrix(const MatrixRow::Matrix& m) const {
    const std::int64_t rows = m.numbers.shape[0], columns_there = m.numbers.shape[1];
    const int label = widest(m.rows);
    const bool narrow = columns_there * 9 > width_;
    const auto text_of = [&](std::int64_t r, std::int64_t c) {
      return narrow ? fmt::format("{:.2f}", m.numbers(r, c).value).substr(0, kNarrow) : m.numbers(r, c).text();
    };
    const auto name_of = [&](std::int64_t c) {
      const std::string& name = m.columns[static_cast<std::size_t>(c)];
      return narrow ? wrapped_at(name, kNarrow) : name;
    };
    std::vector<int> widths(static_cast<std::size_t>(columns_there), 0);
    double largest = 0;
    for (std::int64_t c = 0; c < columns_there; ++c) {
      int& width = widths[static_cast<std::size_t>(c)];
      if (!m.columns.empty()) width = columns(std::string_view(name_of(c)));
      for (std::int64_t r = 0; r < rows; ++r) {
        width = std::max(width, columns(std::string_view(text_of(r, c))));
        if (std::isfinite(m.numbers(r, c).value)) largest = std::max(largest, std::fabs(m.numbers(r, c).value));
      }
    }
    std::vector<Line> lines = {{piece(m.name.in(language_), kFaint)}};
    const std::string margin = label > 0 ? std::string(static_cast<std::size_t>(label) + 1, ' ') : "";
    if (!m.columns.empty()) {
      lines.push_back({piece(margin)});
      for (std::int64_t c = 0; c < columns_there; ++c)
        lines.back().push_back(
            piece(" " + padded(name_of(c), widths[static_cast<std::size_t>(c)], true) + " ", kFaint));
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      lines.emplace_back();
      if (label > 0) lines.back().push_back(piece(padded(m.rows[static_cast<std::size_t>(r)], label) + " ", kFaint));
      for (std::int64_t c = 0; c < columns_there; ++c) {
        const Number& number = m.numbers(r, c);
        const double share = largest > 0 && std::isfinite(number.value) ? std::fabs(number.value) / largest : 0;
        lines.back().push_back(piece(" " + padded(text_of(r, c), widths[static_cast<std::size_t>(c)], true) + " ",
                                     {.heat = share * kHottest, .cool = number.value < 0}));
      }
    }
    return lines;
  }

  Page& page_;
  Language language_;
  int width_;
};

}  // namespace

Page lesson_page(const Step& step, const LessonPageOptions& options) {
  Page page;
  page.title = step.title.in(options.language);
  page.add_line(fmt::format("{}  {}", step.id, page.title), {.bold = true});
  page.add_line();
  for (const Block& block : step.blocks) std::visit(PageWriter(page, options), block);
  fit(page, options.width);
  return page;
}

Page lesson_contents_page(const LessonPageOptions& options) {
  Page page;
  for (const auto& [id, title] : lesson_contents())
    page.add_line(fmt::format("  {}  {}", id, title.in(options.language)));
  return page;
}

}  // namespace regard
