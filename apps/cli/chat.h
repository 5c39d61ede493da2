#pragma once
// A person's words put into the form in which a chat model was taught to expect them.

#include <string>
#include <string_view>

namespace regard::cli {

// `chat_template`: as the model's file stores it (a Jinja program, which is compared with those that are known here,
// never run). `system` may be empty: what the template says by default. Error{unsupported} for a template that is not
// known, Error{bad_input} for a model that has none.
std::string render_chat(std::string_view chat_template, std::string_view system, std::string_view user);

}  // namespace regard::cli
