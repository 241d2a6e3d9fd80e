// SPDX-License-Identifier: Apache-2.0
#include "host/generation/decoding.h"

#include <tenon/elementary.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/philox.h"

namespace tenon::host {

namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

template <typename Number, typename Bound>
void require(bool fits, const char* option, Number value, const Bound& expected) {
  if (!fits) fail(TN_INVALID, SubjectName{option}, "option \"", option, "\" is ", value, "; expected ", expected);
}

bool is_better(const Candidate& a, const Candidate& b) { return a.log_p != b.log_p ? a.log_p > b.log_p : a.id < b.id; }

// Returns the `count` best ids of those that are possible, the best first.
std::vector<Candidate> best(const std::vector<double>& log_p, int64_t count) {
  std::vector<Candidate> found;  // a heap with the worst on top
  for (size_t id = 0; id < log_p.size(); ++id) {
    if (log_p[id] == kImpossible) continue;
    const Candidate candidate{static_cast<int64_t>(id), log_p[id]};
    if (static_cast<int64_t>(found.size()) == count) {
      if (!is_better(candidate, found.front())) continue;
      std::pop_heap(found.begin(), found.end(), is_better);
      found.pop_back();
    }
    found.push_back(candidate);
    std::push_heap(found.begin(), found.end(), is_better);
  }
  std::sort_heap(found.begin(), found.end(), is_better);
  return found;
}

void check_strategy(const DecodingOptions& options) {
  const bool beam = options.method == Method::kBeam;
  constexpr int64_t kMostRows = 65536;  // of one sample
  require(options.beam_size >= 1 && options.beam_size <= kMostRows, "beam_size", options.beam_size, "1 to 65536");
  require(options.results >= 1 && options.results <= kMostRows, "results", options.results, "1 to 65536");
  if (beam && options.results > options.beam_size)
    fail(TN_INVALID, SubjectName{"results"}, "option \"results\" is ", options.results, ", more than option \"",
         "beam_size\", ", options.beam_size);
  if (options.method == Method::kGreedy && options.results > 1)
    fail(TN_INVALID, SubjectName{"results"}, "option \"results\" is ", options.results,
         "; the most probable ids give one result of each sample");
  require(options.length_penalty >= 0 && std::isfinite(options.length_penalty), "length_penalty",
          options.length_penalty, "a number of at least 0");
  require(options.temperature > 0 && std::isfinite(options.temperature), "temperature", options.temperature,
          "a number above 0");
  require(options.top_k >= 0, "top_k", options.top_k, "at least 0");
  require(options.top_p > 0 && options.top_p <= 1, "top_p", options.top_p, "a number in (0, 1]");
}

}  // namespace

void check(const DecodingOptions& options, int64_t vocabulary) {
  const auto check_id = [&](const char* option, int64_t id) {
    require(id >= -1 && id < vocabulary, option, id, text("an id of 0 to ", vocabulary - 1, ", or none"));
  };
  check_id("begin_id", options.begin_id);
  check_id("end_id", options.end_id);
  if (options.method == Method::kBeam && options.end_id < 0)
    fail(TN_INVALID, SubjectName{"end_id"}, "option \"end_id\" is missing: beam search compares results that end");
  require(options.max_length >= 1, "max_length", options.max_length, "at least 1");
  check_strategy(options);
}

double length_divisor(double strength, int64_t length) {
  return strength == 0 ? 1 : tn_math_pow((5 + static_cast<double>(length)) / 6, strength);
}

bool log_probabilities(const ArrayView& scores, int64_t row, bool from_logits, int64_t vocabulary,
                       std::vector<double>& to) {
  const int64_t count = scores.shape.at(1);
  to.resize(static_cast<size_t>(count));
  const int64_t first = row * count;
  double most = kImpossible, total = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double score = scores.dtype == TN_F64
                             ? static_cast<const double*>(scores.data)[first + i]
                             : static_cast<double>(static_cast<const float*>(scores.data)[first + i]);
    if (std::isnan(score) || (!from_logits && score < 0)) return false;
    most = std::max(most, score);
    total += score;
    to[static_cast<size_t>(i)] = score;
  }
  if (!std::isfinite(most)) return false;
  if (from_logits) {
    double sum = 0;
    for (double& each : to) sum += tn_math_exp(each -= most);
    const double log_sum = tn_math_log(sum);  // of at least 1
    for (double& each : to) each -= log_sum;
  } else {
    constexpr double kRounding = 1e-3;  // of a sum of float32
    if (std::abs(total - 1) > kRounding) return false;
    for (double& each : to) each = std::min(0.0, tn_math_log(each));
  }
  to.resize(static_cast<size_t>(vocabulary));
  return std::any_of(to.begin(), to.end(), [](double each) { return each != kImpossible; });
}

Search::Search(const DecodingOptions& options, std::vector<int64_t> given, int64_t most, uint64_t stream, Sink sink)
    : options_(options),
      given_(std::move(given)),
      most_(most),
      stream_(stream),
      sink_(std::move(sink)),
      rows_{{given_.at(0), 0}},
      live_(1) {}

void Search::feed_given() { rows_ = {{given_.at(given_fed_++), 0}}; }

std::vector<Candidate> Search::candidates(size_t row, const std::vector<double>& log_p) const {
  if (options_.method == Method::kGreedy) return best(log_p, 1);
  if (options_.method == Method::kBeam) return best(log_p, options_.beam_size);
  std::vector<Candidate> from;
  if (options_.top_k > 0 || options_.top_p < 1) {
    from = best(log_p, options_.top_k > 0 ? options_.top_k : static_cast<int64_t>(log_p.size()));
  } else {
    for (size_t id = 0; id < log_p.size(); ++id) from.push_back({static_cast<int64_t>(id), log_p[id]});
  }
  // Before the first draw the results of a sample share a row.
  std::vector<Candidate> drawn;
  if (length_ > 0) return {draw(from, live_.at(row).number)};
  for (int64_t number = 0; number < options_.results; ++number) drawn.push_back(draw(from, number));
  return drawn;
}

// Draws from candidates, which are sorted if top_p is below 1.
Candidate Search::draw(const std::vector<Candidate>& from, int64_t number) const {
  double most = kImpossible;
  for (const Candidate& each : from) most = std::max(most, each.log_p);
  std::vector<double> weights;
  double total = 0;
  for (const Candidate& each : from) {
    weights.push_back(tn_math_exp((each.log_p - most) / options_.temperature));
    total += weights.back();
  }
  if (options_.top_p < 1) {
    const double enough = options_.top_p * total;
    double sum = 0;
    size_t kept = 0;
    while (kept < weights.size() && sum < enough) sum += weights[kept++];
    weights.resize(kept);
    total = sum;
  }
  constexpr uint64_t kStreams = 0x67656e6572617465;  // those of other uses of a seed begin elsewhere
  const uint64_t counter = (static_cast<uint64_t>(number) << 32U) + static_cast<uint64_t>(length_);
  const Philox::Block block = Philox(options_.seed, kStreams + stream_).block(counter);
  const double place = unit_interval(block[0], block[1]) * total;
  double sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    last = i;
    sum += weights[i];
    if (place < sum) break;
  }
  return from[last];
}

void Search::choose(const std::vector<std::vector<Candidate>>& candidates) {
  options_.method == Method::kBeam ? choose_beam(candidates) : choose_each(candidates);
}

void Search::choose_each(const std::vector<std::vector<Candidate>>& candidates) {
  std::vector<Beginning> live;
  rows_.clear();
  const bool first = length_++ == 0;
  for (size_t row = 0; row < candidates.size(); ++row) {
    for (size_t i = 0; i < candidates[row].size(); ++i) {
      if (first) live_[row].number = static_cast<int64_t>(i);
      if (sink_) sink_(live_[row].number, candidates[row][i].id);
      take(row, candidates[row][i], live);
    }
  }
  live_ = std::move(live);
}

void Search::choose_beam(const std::vector<std::vector<Candidate>>& candidates) {
  struct Choice {
    size_t row = 0;
    Candidate candidate;
    double log_p = 0;
  };
  std::vector<Choice> choices;
  for (size_t row = 0; row < candidates.size(); ++row)
    for (const Candidate& each : candidates[row]) choices.push_back({row, each, live_[row].log_p + each.log_p});
  const auto before = [](const Choice& a, const Choice& b) {
    if (a.log_p != b.log_p) return a.log_p > b.log_p;
    return a.row != b.row ? a.row < b.row : a.candidate.id < b.candidate.id;
  };
  std::sort(choices.begin(), choices.end(), before);
  if (static_cast<int64_t>(choices.size()) > options_.beam_size)
    choices.resize(static_cast<size_t>(options_.beam_size));
  std::vector<Beginning> live;
  rows_.clear();
  ++length_;
  for (const Choice& choice : choices) take(choice.row, choice.candidate, live);
  live_ = std::move(live);
  prune();
}

// Continues a row, into `live` or, if that ends it, a result.
void Search::take(size_t row, const Candidate& candidate, std::vector<Beginning>& live) {
  const Beginning& from = live_[row];
  nodes_.push_back({candidate.id, from.last});
  const Beginning made{nodes_.size() - 1, from.log_p + candidate.log_p, from.number};
  if (candidate.id == options_.end_id || length_ == most_) return end(made);
  live.push_back(made);
  rows_.push_back({candidate.id, row});
}

void Search::end(const Beginning& beginning) {
  ended_.push_back({beginning, beginning.log_p / length_divisor(options_.length_penalty, length_)});
}

// Keeps the best results, and ends the search if no row can become a better one: a sum of logarithms falls with each
// id, and the divisor is largest at the end.
void Search::prune() {
  const auto count = static_cast<size_t>(options_.results);
  const auto before = [](const Ended& a, const Ended& b) { return a.score > b.score; };
  std::stable_sort(ended_.begin(), ended_.end(), before);
  if (ended_.size() > count) ended_.resize(count);
  if (live_.empty() || ended_.size() < count) return;
  const double bound = live_.front().log_p / length_divisor(options_.length_penalty, most_);
  if (ended_.back().score < bound) return;
  live_.clear();
  rows_.clear();
}

void Search::stop() {
  for (const Beginning& each : live_)
    if (length_ > 0) end(each);
  live_.clear();
  rows_.clear();
  if (options_.method == Method::kBeam) prune();
}

std::vector<Search::Result> Search::results() const {
  std::vector<Ended> ended = ended_;
  if (options_.method == Method::kSample)
    std::sort(ended.begin(), ended.end(),
              [](const Ended& a, const Ended& b) { return a.beginning.number < b.beginning.number; });
  std::vector<Result> results;
  for (const Ended& each : ended) {
    Result result;
    for (size_t node = each.beginning.last; node != kNone; node = nodes_[node].before)
      result.ids.push_back(nodes_[node].id);
    std::reverse(result.ids.begin(), result.ids.end());
    result.score = each.score;
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace tenon::host
