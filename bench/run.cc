#include "attention.h"
#include "dense.h"
#include "line.h"
#include "model.h"
#include "what_if.h"

namespace regard::bench {

void run(const std::string& filter, const std::string& model, const std::function<void(const Line&)>& each) {
  dense_lines(filter, each);
  attention_lines(filter, each);
  if (!model.empty() && std::string("model prefill decode").find(filter) != std::string::npos)
    for (const Line& line : model_lines(model)) each(line);
  if (!model.empty()) what_if_lines(model, filter, each);
}

}  // namespace regard::bench
