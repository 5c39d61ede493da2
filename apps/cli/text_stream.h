#pragma once
// Text that is printed as it is made, token by token.

#include <string>
#include <string_view>

namespace regard::cli {

class TextStream {
 public:
  // For a terminal, characters are held back until they are whole and what a terminal would obey is shown instead;
  // elsewhere the bytes go out as they are.
  explicit TextStream(bool terminal) : terminal_(terminal) {}
  void add(std::string_view bytes);  // Error{io}
  void finish();                     // what is left, and a line feed

 private:
  void print(std::string_view text);
  bool terminal_;
  std::string held_;
};

}  // namespace regard::cli
