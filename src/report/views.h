#pragma once
// The pages of the smaller verbs.

#include <span>

#include "report/page.h"
#include "report/results.h"

namespace regard {

// `width`: columns there are.
Page models_page(std::span<const ListedModel> models, int width);
Page fetch_page(const FetchResult& result);
Page convert_page(const ConvertResult& result);
Page info_page(const InfoResult& result, int width);
Page tokens_page(const TokensResult& result, int width);
Page logits_page(const LogitsResult& result, int width, bool coloured);

// The next tokens with bars, for other pages too.
void add_candidates(Page& page, std::span<const Candidate> candidates, int width);
// The few that stand beside an answer that is about something else.
std::span<const Candidate> first_candidates(std::span<const Candidate> candidates);

}  // namespace regard
