#pragma once
// A person's words put into the form in which a chat model was taught to expect them: the model's own template.

#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace regard::cli {

// What the template of the model's file makes of a conversation that awaits the model's answer: `system`, if it is not
// empty, and `user`. Special tokens are written out. The template is a program (Jinja); Python's jinja2 runs it in its
// sandbox, as the public implementation does. Error{bad_input} for a model that has none, for one that its template
// refuses, and for a template that is no program; Error{unsupported} without Python or its jinja2.
std::string render_chat(const Tokenizer& tokenizer, std::string_view system, std::string_view user);

}  // namespace regard::cli
