#pragma once
// What a hub's refusals mean to a person.

#include <string>

#include "weights/http.h"
#include "weights/hub_settings.h"

namespace regard {

// Throws the Error for an answer that is not what was asked for. `subject`: "org/name" or "org/name, FILE". Statuses as
// huggingface_hub reads them (utils/_http.py, hf_raise_for_status), with the hub's own X-Error-Code.
[[noreturn]] void refuse(const HttpAnswer& answer, const std::string& subject, const HubSettings& settings);

// Nobody was reached at all.
[[noreturn]] void unreachable(const std::string& fault, const HubSettings& settings);

}  // namespace regard
