#include "text/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <bitset>
#include <memory>
#include <vector>

#include "text/utf8.h"

namespace regard {
namespace {

// Decompositions lie below this (the last are the compatibility ideographs at U+2F800).
constexpr std::uint32_t kLimit = 0x30000;

bool composes(NormalForm form) { return form == NormalForm::c || form == NormalForm::kc; }
bool is_compatible(NormalForm form) { return form == NormalForm::kc || form == NormalForm::kd; }

const utf8proc_property_t& property(std::uint32_t code) {
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
}

// The full decomposition, appended to `out`.
void decompose(std::uint32_t code, bool compatible, std::vector<utf8proc_int32_t>& out) {
  utf8proc_int32_t buffer[32];  // the longest has 18: U+FDFA
  int boundary = 0;
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), buffer, 32,
                                         static_cast<utf8proc_option_t>(options), &boundary);
  out.insert(out.end(), buffer, buffer + n);
}

// A form of a few valid characters. utf8proc's own ordering of marks takes the square of their number; a text may have
// a million of them in a row.
std::string normalised(std::string_view piece, NormalForm form) {
  std::vector<utf8proc_int32_t> codes;
  for (std::size_t at = 0; at < piece.size();) {
    const Character c = character_at(piece, at);
    decompose(c.code, is_compatible(form), codes);
    at += c.length;
  }
  const auto combining = [](utf8proc_int32_t code) {
    return property(static_cast<std::uint32_t>(code)).combining_class;
  };
  for (auto run = codes.begin(); run != codes.end();) {
    const auto marked = std::find_if(run, codes.end(), [&](auto code) { return combining(code) != 0; });
    run = std::find_if(marked, codes.end(), [&](auto code) { return combining(code) == 0; });
    std::stable_sort(marked, run, [&](auto a, auto b) { return combining(a) < combining(b); });
  }
  auto n = static_cast<utf8proc_ssize_t>(codes.size());
  if (composes(form))
    n = utf8proc_normalize_utf32(codes.data(), n, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string text;
  for (utf8proc_ssize_t i = 0; i < n; ++i)
    append_utf8(text, static_cast<std::uint32_t>(codes[static_cast<std::size_t>(i)]));
  return text;
}

// How many bytes of whole characters two texts have in common at their ends; never all of either.
std::size_t common_end(std::string_view a, std::string_view b) {
  std::size_t same = 0, whole = 0;
  const std::size_t most = std::min(a.size(), b.size());
  while (same + 1 < most && a[a.size() - 1 - same] == b[b.size() - 1 - same]) {
    ++same;
    if ((static_cast<std::uint8_t>(a[a.size() - same]) & 0xC0) != 0x80) whole = same;
  }
  return whole;
}

struct Marks {
  std::bitset<kLimit> joins;    // may combine with what stands before it, so may not begin a piece
  std::bitset<kLimit> changes;  // is another text in the form even by itself
};

std::unique_ptr<Marks> made_marks(NormalForm form) {
  auto marks = std::make_unique<Marks>();
  std::vector<std::vector<utf8proc_int32_t>> decompositions(kLimit);
  for (std::uint32_t code = 0; code < kLimit; ++code) {
    const utf8proc_property_t& p = property(code);
    if (p.combining_class != 0) marks->joins.set(code);
    if (p.decomp_seqindex == UINT16_MAX) continue;
    if (p.decomp_type == 0) {  // canonical: what is not its first part may be composed with what is
      decompose(code, false, decompositions[code]);
      for (std::size_t i = 1; i < decompositions[code].size(); ++i)
        marks->joins.set(static_cast<std::uint32_t>(decompositions[code][i]));
    }
    if (is_compatible(form)) {
      decompositions[code].clear();
      decompose(code, true, decompositions[code]);
    }
  }
  for (std::uint32_t vowel = 0x1161; vowel <= 0x1175; ++vowel) marks->joins.set(vowel);
  for (std::uint32_t tail = 0x11A8; tail <= 0x11C2; ++tail) marks->joins.set(tail);
  for (std::uint32_t code = 0; code < kLimit; ++code) {
    const bool syllable = code >= 0xAC00 && code < 0xD7A4;  // its parts are computed, not listed
    if (decompositions[code].empty() && !syllable) continue;
    if (!syllable && marks->joins.test(static_cast<std::uint32_t>(decompositions[code][0]))) marks->joins.set(code);
    std::string alone;
    append_utf8(alone, code);
    if (normalised(alone, form) != alone) marks->changes.set(code);
  }
  return marks;
}

const Marks& marks_of(NormalForm form) {
  switch (form) {
    case NormalForm::c: {
      static const auto made = made_marks(NormalForm::c);
      return *made;
    }
    case NormalForm::d: {
      static const auto made = made_marks(NormalForm::d);
      return *made;
    }
    case NormalForm::kc: {
      static const auto made = made_marks(NormalForm::kc);
      return *made;
    }
    default: {
      static const auto made = made_marks(NormalForm::kd);
      return *made;
    }
  }
}

}  // namespace

std::optional<Rewritten> normal_form(std::string_view text, NormalForm form) {
  const Marks& marks = marks_of(form);
  const auto in = [](const std::bitset<kLimit>& set, std::uint32_t code) { return code < kLimit && set.test(code); };

  // A piece is a character and all that may combine with it: pieces are normalised by themselves.
  std::optional<Rewritten> result;
  std::size_t kept = 0, begin = 0;  // what stands before `kept` is in `result`; the piece begins at `begin`
  bool changes = false;             // the piece may not be in the form
  const auto finish = [&](std::size_t end) {
    if (changes) {
      const std::string_view piece = text.substr(begin, end - begin);
      const std::string with = normalised(piece, form);
      if (with != piece) {
        // Marks at the end that stayed what they were keep their own ranges.
        const std::size_t same = common_end(piece, with);
        if (!result) result.emplace();
        result->keep(text.substr(kept, begin - kept));
        result->replace(static_cast<std::int64_t>(piece.size() - same),
                        std::string_view(with).substr(0, with.size() - same));
        result->keep(piece.substr(piece.size() - same));
        kept = end;
      }
    }
    begin = end;
    changes = false;
  };
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (c.code == kInvalidByte) {
      finish(at);
      begin = at + 1;  // in no piece: it combines with nothing
    } else if (in(marks.joins, c.code)) {
      changes |= at != begin || in(marks.changes, c.code);
    } else {
      finish(at);
      changes = in(marks.changes, c.code);
    }
    at += c.length;
  }
  finish(text.size());
  if (result) result->keep(text.substr(kept));
  return result;
}

}  // namespace regard
