#pragma once
// Shows what happens in a decoder's attention that reads the source as if it were its own attention: what is written or
// kept of `z`, `attn_out` and edges is then that of cross_z, cross_out and cross edges. So one way to edit and one to
// record serves both.

#include "model/tap.h"

namespace regard {

class AcrossTap final : public Tap {
 public:
  // `tap` sees the sites z and attn_out and is asked for edges; it must outlive this.
  explicit AcrossTap(Tap& tap) : tap_(tap) {}

  bool wants(Site site, std::int64_t layer) const override { return is_across(site) && tap_.wants(own(site), layer); }
  void at(Site site, std::int64_t layer, std::span<const Row> rows, View<float, 3> value) override {
    if (is_across(site)) tap_.at(own(site), layer, rows, value);
  }
  std::span<const EdgeEdit> cross_edges(std::int64_t layer, std::span<const Row> rows) override {
    return tap_.edges(layer, rows);
  }

 private:
  static bool is_across(Site site) { return site == Site::cross_z || site == Site::cross_out; }
  static Site own(Site site) { return site == Site::cross_z ? Site::z : Site::attn_out; }
  Tap& tap_;
};

}  // namespace regard
