#pragma once
// A value in [0, 1] as a colour to write on: nothing at 0, warmer and more striking towards 1; or cooler, for what
// works the other way (orange and blue are told apart by every common kind of colour vision).

#include <cstdint>

namespace regard {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

struct Shade {
  Colour paper, ink;
};

// What the shade is seen against. A terminal does not say whether it is dark or light: middle tones, from grey to
// bright orange, are as clear on the one as on the other.
enum class Background { unknown, light, dark };

inline constexpr double kFaintestShade = 0.02;  // below it there is none
// The ink is black or white, whichever reads better: a contrast of at least 4.5 (WCAG 2, level AA).
Shade shade(double value, Background background, bool cool = false);

inline constexpr Colour kLightPage{255, 255, 255}, kDarkPage{13, 17, 23};
// Clear on dark and on light: a middle orange and a middle blue.
inline constexpr Colour kWarm{228, 112, 20}, kCool{64, 132, 214};

}  // namespace regard
