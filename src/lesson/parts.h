#pragma once
// The twelve steps, one file each.

#include "lesson/lesson.h"

namespace regard {

Step one_retrieval(const LessonRequest& request);              // a
Step worked_single_head(const LessonRequest& request);         // b
Step keys_and_values_apart(const LessonRequest& request);      // c
Step masks_and_cache(const LessonRequest& request);            // d
Step why_the_root(const LessonRequest& request);               // e
Step heads_and_groups(const LessonRequest& request);           // f
Step order_and_rotation(const LessonRequest& request);         // g
Step the_block(const LessonRequest& request);                  // h
Step what_it_costs(const LessonRequest& request);              // i
Step reading_is_not_explaining(const LessonRequest& request);  // j
Step exercises(const LessonRequest& request);                  // k
Step one_training_step(const LessonRequest& request);          // l

}  // namespace regard
