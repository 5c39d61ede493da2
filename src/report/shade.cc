#include "report/shade.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace regard {
namespace {

constexpr std::array<Colour, 5> kUnknown = {
    {{110, 112, 122}, {150, 104, 84}, {204, 98, 40}, {246, 130, 20}, {255, 184, 28}}};
constexpr std::array<Colour, 5> kOnLight = {
    {kLightPage, {255, 232, 200}, {255, 196, 120}, {255, 146, 48}, {236, 98, 16}}};
constexpr std::array<Colour, 5> kOnDark = {{kDarkPage, {66, 38, 22}, {128, 64, 18}, {206, 108, 20}, {255, 190, 70}}};
constexpr std::array<Colour, 5> kCoolUnknown = {
    {{110, 112, 122}, {92, 118, 156}, {66, 128, 200}, {58, 146, 236}, {90, 184, 255}}};
constexpr std::array<Colour, 5> kCoolOnLight = {
    {kLightPage, {214, 232, 252}, {152, 200, 248}, {84, 154, 232}, {28, 102, 196}}};
constexpr std::array<Colour, 5> kCoolOnDark = {
    {kDarkPage, {22, 42, 70}, {24, 74, 134}, {44, 124, 206}, {120, 196, 255}}};

// Relative luminance, WCAG 2.
double luminance(Colour colour) {
  const auto linear = [](std::uint8_t c) {
    const double s = c / 255.0;
    return s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

Colour between(std::span<const Colour> stops, double value) {
  const double place = value * static_cast<double>(stops.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(place), stops.size() - 2);
  const double part = place - static_cast<double>(low);
  const auto mix = [&](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + (b - a) * part));
  };
  const Colour a = stops[low], b = stops[low + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

}  // namespace

Shade shade(double value, Background background, bool cool) {
  const auto& stops = background == Background::light  ? (cool ? kCoolOnLight : kOnLight)
                      : background == Background::dark ? (cool ? kCoolOnDark : kOnDark)
                                                       : (cool ? kCoolUnknown : kUnknown);
  const Colour paper = between(stops, std::clamp(std::isnan(value) ? 0.0 : value, 0.0, 1.0));
  // (L + 0.05) / 0.05 and 1.05 / (L + 0.05) are equal at L = 0.179.
  return {paper, luminance(paper) > 0.179 ? Colour{0, 0, 0} : Colour{255, 255, 255}};
}

}  // namespace regard
