#include "lesson/lesson.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lesson/parts.h"
#include "tensor/error.h"

namespace regard {
namespace {

struct Part {
  const char* id;
  LessonText title;
  Step (*make)(const LessonRequest&);
};

const std::array<Part, 12>& parts() {
  static const std::array<Part, 12> kParts = {{
      {"a", {"One retrieval", "一次读取"}, one_retrieval},
      {"b", {"A whole head, by hand", "手算一个完整的注意力头"}, worked_single_head},
      {"c", {"Keys decide who is read, values what is handed on", "键决定读谁，值决定读到什么"}, keys_and_values_apart},
      {"d", {"Masks, and writing one token at a time", "掩码，以及逐个生成"}, masks_and_cache},
      {"e", {"Why divide by √d", "为什么要除以 √d"}, why_the_root},
      {"f", {"Several heads, and groups of them", "多头与分组"}, heads_and_groups},
      {"g", {"Order", "顺序"}, order_and_rotation},
      {"h", {"The block, with a model's numbers", "一个完整的块：模型里的数字"}, the_block},
      {"i", {"What it costs", "代价"}, what_it_costs},
      {"j", {"Reading is not explaining", "读到不等于解释"}, reading_is_not_explaining},
      {"k", {"Three exercises", "三道练习"}, exercises},
      {"l", {"One step of learning", "学习的一步"}, one_training_step},
  }};
  return kParts;
}

}  // namespace

const Numbers* Step::value(std::string_view name) const {
  for (const auto& [called, numbers] : values)
    if (called == name) return &numbers;
  return nullptr;
}

std::vector<std::pair<std::string, LessonText>> lesson_contents() {
  std::vector<std::pair<std::string, LessonText>> contents;
  for (const Part& part : parts()) contents.emplace_back(part.id, part.title);
  return contents;
}

Lesson make_lesson(const LessonRequest& request) {
  for (const std::string& id : request.steps)
    if (std::none_of(parts().begin(), parts().end(), [&](const Part& part) { return part.id == id; }))
      throw Error(ErrorCode::usage, fmt::format("the lesson has no step \"{}\", --step", id),
                  fmt::format("its steps are {} to {}", parts().front().id, parts().back().id));
  Lesson lesson;
  std::int64_t done = 0;
  for (const Part& part : parts()) {
    const bool wanted =
        request.steps.empty() || std::find(request.steps.begin(), request.steps.end(), part.id) != request.steps.end();
    if (request.progress) request.progress->at("preparing the lesson", done++, std::ssize(parts()));
    if (!wanted) continue;
    Step step = part.make(request);
    step.id = part.id;
    step.title = part.title;
    lesson.steps.push_back(std::move(step));
  }
  return lesson;
}

}  // namespace regard
