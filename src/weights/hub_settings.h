#pragma once
// Where the hub is and how to talk to it: the variables of the environment that its own programs read
// (huggingface_hub, constants.py), so that what works for them works here.

#include <filesystem>
#include <string>

namespace regard {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT; no slash at the end
  std::string token;                                // HF_TOKEN, else the file HF_TOKEN_PATH, else HF_HOME/token
  std::string token_from;                           // for messages: "HF_TOKEN", or the file
  std::filesystem::path cache;                      // HF_HUB_CACHE, else HF_HOME/hub
  bool offline = false;                             // HF_HUB_OFFLINE
  int stall_seconds = 30;                           // HF_HUB_DOWNLOAD_TIMEOUT: give up when nothing comes for so long
};

// HF_HOME is $XDG_CACHE_HOME/huggingface or ~/.cache/huggingface when it is not set. Errors: usage for a variable that
// makes no sense, io for a token file that cannot be read.
HubSettings hub_settings();
// The folder alone: needs nothing of the rest to be right.
std::filesystem::path hub_cache_folder();

}  // namespace regard
