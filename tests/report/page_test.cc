#include "report/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "report/markup.h"

namespace regard {
namespace {

// Contrast of two colours, WCAG 2.
double contrast(Colour a, Colour b) {
  const auto luminance = [](Colour c) {
    const auto linear = [](int v) { return v <= 10 ? v / 255.0 / 12.92 : std::pow((v / 255.0 + 0.055) / 1.055, 2.4); };
    return 0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue);
  };
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

TEST(Shade, IsReadableEverywhere) {
  for (const Background background : {Background::unknown, Background::light, Background::dark}) {
    for (double value = 0; value <= 1.5; value += 0.01) {
      const Shade s = shade(value, background);
      EXPECT_GE(contrast(s.paper, s.ink), 4.5) << value;  // the level AA of WCAG 2 for text
    }
    EXPECT_EQ(shade(1, background).paper, shade(7, background).paper);
    EXPECT_EQ(shade(0, background).paper, shade(std::nan(""), background).paper);
  }
  EXPECT_EQ(shade(0, Background::light).paper, kLightPage);
  EXPECT_EQ(shade(0, Background::dark).paper, kDarkPage);
}

TEST(Shade, StandsOutMoreTheHigherTheValue) {
  for (const auto& [background, page] : {std::pair(Background::light, kLightPage), {Background::dark, kDarkPage}}) {
    double last = 1;
    for (double value = 0.05; value <= 1; value += 0.05) {
      const double c = contrast(shade(value, background).paper, page);
      EXPECT_GT(c, last) << value;
      last = c;
    }
  }
}

TEST(TerminalText, ColoursAsFarAsTheTerminalHasThem) {
  const Line line = {piece("plain "), piece("x", {.heat = 1, .bold = true}), piece("y", {.ink = Colour{228, 112, 20}})};
  EXPECT_EQ(terminal_text(line, Colours::none), "plain xy");
  EXPECT_EQ(terminal_text(line, Colours::all),
            "plain \x1b[1;38;2;0;0;0;48;2;255;184;28mx\x1b[0m\x1b[38;2;228;112;20my\x1b[0m");
  EXPECT_EQ(terminal_text(line, Colours::many), "plain \x1b[1;38;5;16;48;5;214mx\x1b[0m\x1b[38;5;166my\x1b[0m");
  EXPECT_EQ(terminal_text(line, Colours::few), "plain \x1b[1;30;43mx\x1b[0m\x1b[33my\x1b[0m");
  EXPECT_EQ(terminal_text({piece("f", {.faint = true})}, Colours::few), "\x1b[2mf\x1b[0m");
  EXPECT_EQ(terminal_text({piece("g", {.ink = Colour{118, 118, 118}})}, Colours::many), "\x1b[38;5;243mg\x1b[0m");
  for (const double nothing : {0.0, -1.0, 0.01, std::nan("")})
    EXPECT_EQ(terminal_text({piece("f", {.heat = nothing})}, Colours::all), "f");
}

TEST(Piece, CountsColumns) {
  EXPECT_EQ(piece("漢字").columns, 4);
  EXPECT_EQ(columns(Line{piece("ab"), piece("字")}), 4);
}

TEST(Fit, CutsWhatIsTooWide) {
  Page page;
  page.add_line("short");
  Line& line = page.add_line("abc");
  line.push_back(piece("漢字x", {.bold = true}));
  line.push_back(piece("more"));
  for (const auto& [width, text] : std::vector<std::pair<int, std::string>>{{12, "abc漢字xmore"},
                                                                            {11, "abc漢字xmo…"},
                                                                            {8, "abc漢字…"},
                                                                            {7, "abc漢…"},
                                                                            {6, "abc漢…"},
                                                                            {5, "abc…"},
                                                                            {4, "abc…"},
                                                                            {2, "a…"}}) {
    Page cut = page;
    fit(cut, width);
    EXPECT_EQ(terminal_text(cut.lines[0], Colours::none), width >= 5 ? "short" : width == 4 ? "sho…" : "s…");
    EXPECT_EQ(terminal_text(cut.lines[1], Colours::none), text) << width;
    EXPECT_LE(columns(cut.lines[1]), width);
  }
}

Page sample_page() {
  Page page{.title = "a <b> & \"c\"", .lines = {}};
  Line& line = page.add_line("<&>\"' 漢", {.bold = true});
  line.push_back(piece("hot", {.heat = 1}, "note \"1\" <2>"));
  page.add_line();
  page.add_line("faint", {.faint = true});
  return page;
}

// Every tag that opens closes in order, attributes are quoted, and nothing else opens one.
void expect_well_formed(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t i = 0; (i = text.find('<', i)) != text.npos;) {
    const std::size_t end = text.find('>', i);
    ASSERT_NE(end, text.npos);
    const std::string tag = text.substr(i + 1, end - i - 1);
    i = end;
    if (tag[0] == '!') continue;
    const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty()) << tag;
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/' && name != "meta") {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty()) << open.back();
}

TEST(Svg, IsWellFormedAndHoldsThePage) {
  Output out = Output::to_memory();
  write_svg(out, sample_page());
  out.finish();
  expect_well_formed(out.text());
  EXPECT_NE(out.text().find("&lt;&amp;&gt;&quot;&#39; 漢"), std::string::npos);
  EXPECT_NE(out.text().find("<title>note &quot;1&quot; &lt;2&gt;</title>"), std::string::npos);
  EXPECT_NE(out.text().find("<rect class=\"h20\""), std::string::npos);
  EXPECT_NE(out.text().find("rect.h20{fill:#ec6210}"), std::string::npos);
  EXPECT_EQ(out.text().find("http://", 60), std::string::npos);  // beside the name space: needs nothing from elsewhere
}

TEST(Html, IsWellFormedAndHoldsThePage) {
  Output out = Output::to_memory();
  write_html(out, sample_page());
  out.finish();
  expect_well_formed(out.text());
  EXPECT_NE(out.text().find("&lt;&amp;&gt;&quot;&#39; 漢"), std::string::npos);
  EXPECT_NE(out.text().find("title=\"note &quot;1&quot; &lt;2&gt;\""), std::string::npos);
  EXPECT_EQ(out.text().find("http"), std::string::npos);
}

}  // namespace
}  // namespace regard
