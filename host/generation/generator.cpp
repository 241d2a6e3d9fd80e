// SPDX-License-Identifier: Apache-2.0
#include "host/generation/generator.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "core/error.h"
#include "host/machine/sample_range.h"
#include "host/machine/widening.h"

namespace tenon::host {

namespace {

// Copies the ids of a prompt.
std::vector<int64_t> ids_of(const ArrayView& array) {
  std::vector<int64_t> ids(static_cast<size_t>(array.shape.at(0)));
  auto* const to = reinterpret_cast<std::byte*>(ids.data());
  if (array.dtype == TN_I64)
    copy_elements(array, to);
  else
    copy_widened(array, TN_I64, to);
  return ids;
}

// The shapes of what a row leaves.
std::vector<std::vector<int64_t>> shapes_of(const std::vector<StepHistory>& histories) {
  std::vector<std::vector<int64_t>> shapes;
  for (const StepHistory& each : histories) shapes.push_back(each.data->data()->shape);
  return shapes;
}

}  // namespace

Generator::Generator(StepModel model, std::shared_ptr<ParameterSet> set, Registry& registry,
                     std::shared_ptr<Device> device, const tn_parallel* parallel, const tn_parallel* pool,
                     const GeneratorOptions& options)
    : model_(std::move(model)),
      set_(std::move(set)),
      registry_(registry),
      device_(std::move(device)),
      parallel_(parallel),
      pool_(pool),
      options_(options),
      history_(set_->allocator(), options.machine.compute, shapes_of(model_.histories)) {
  if (options_.machine.max_samples < 1)
    fail(TN_INVALID, SubjectName{"max_samples"}, "option \"max_samples\" is ", options_.machine.max_samples,
         "; expected at least 1");
  if (!model_.outside.empty())
    outside_ = std::make_unique<Machine>(Topology::trace(model_.outside), set_, registry_, std::vector{device_},
                                         parallel_, options_.machine);
  for (size_t i = 0; i < model_.inputs.size(); ++i) values_.emplace_back(set_->allocator());
  make_step(options_.machine.max_samples);
}

void Generator::make_step(int64_t rows) {
  if (rows <= step_rows_) return;
  MachineOptions machine = options_.machine;
  machine.max_samples = rows;
  step_ = std::make_unique<Machine>(Topology::trace(model_.outputs), set_, registry_, std::vector{device_}, parallel_,
                                    machine);
  step_rows_ = rows;
  sources_.clear();
  for (const Feed& feed : step_->feeds()) sources_.push_back(source_of(feed.name));
}

Generator::FeedSource Generator::source_of(const std::string& data_layer) const {
  using Kind = FeedSource::Kind;
  if (data_layer == model_.ids->name) return {Kind::kIds};
  if (data_layer == model_.sources.position->name) return {Kind::kPosition};
  if (!model_.histories.empty() && data_layer == model_.sources.past->name) return {Kind::kPast};
  for (size_t i = 0; i < model_.inputs.size(); ++i)
    if (data_layer == model_.inputs[i].data->name) return {Kind::kInput, i};
  for (size_t i = 0; i < model_.histories.size(); ++i)
    if (data_layer == model_.histories[i].data->name) return {Kind::kHistory, i};
  fail(TN_INVALID, SubjectName{data_layer}, "data layer \"", data_layer, "\" is not fed");
}

// Returns what is fed first to each sample: the begin id and the prompt. Throws for prompts that cannot be continued.
std::vector<std::vector<int64_t>> Generator::given_ids(const DecodingOptions& decoding, const NamedArray* prompts,
                                                       int64_t samples) const {
  const std::string& name = model_.ids->name;
  std::vector<int64_t> all;
  if (prompts != nullptr) all = ids_of(prompts->array);
  std::vector<std::vector<int64_t>> given(static_cast<size_t>(samples));
  for (size_t i = 0; i < given.size(); ++i) {
    if (decoding.begin_id >= 0) given[i].push_back(decoding.begin_id);
    if (prompts == nullptr) continue;
    const int64_t *const offsets = prompts->array.offsets[0], length = offsets[i + 1] - offsets[i];
    if (length >= decoding.max_length)
      fail(TN_INVALID, SubjectName{name}, "the prompt of sample ", i, " has ", length, " ids; option \"max_length\", ",
           decoding.max_length, ", counts those of the prompt and leaves none to generate");
    for (int64_t k = offsets[i]; k < offsets[i + 1]; ++k) {
      const int64_t id = all[static_cast<size_t>(k)];
      if (id < 0 || id >= model_.vocabulary)
        fail(TN_BAD_DATA, SubjectName{name}, "id ", k - offsets[i], " of the prompt of sample ", i, " is ", id,
             "; expected 0 to ", model_.vocabulary - 1);
      given[i].push_back(id);
    }
  }
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].empty())
      fail(TN_INVALID, SubjectName{name}, "the prompt of sample ", i,
           " is empty, and option \"begin_id\" is missing: nothing can be fed first");
  return given;
}

int64_t Generator::count_samples(const std::vector<ArrayView>& fed, const NamedArray* prompts) const {
  const std::string& name = model_.ids->name;
  int64_t samples = fed.empty() ? -1 : samples_of(fed.front());
  if (prompts == nullptr) return samples < 0 ? 1 : samples;
  const ArrayView& array = prompts->array;
  if (array.storage != TN_RAGGED || array.levels != 1 || array.shape.size() != 1 ||
      (array.dtype != TN_I64 && !widens(array.dtype, TN_I64)))
    fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\": expected sequences of integers as prompts, got ",
         storage_name(array.storage), " ", dtype_name(array.dtype), " of rank ", array.shape.size());
  if (array.shape[0] > 0 && array.data == nullptr)
    fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\": its ", array.shape[0], " rows have no data");
  if (samples >= 0 && array.samples != samples)
    fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\": prompts of ", array.samples,
         " samples; the other data layers have ", samples);
  const int64_t* const offsets = array.offsets[0];
  for (int64_t i = 0; array.samples > 0 && i <= array.samples; ++i)
    if (offsets == nullptr || (i == 0 ? offsets[0] != 0 : offsets[i] < offsets[i - 1]))
      fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\": its offsets are missing or fall, at sequence ",
           i);
  if (array.samples < 0 || (array.samples > 0 ? offsets[array.samples] : 0) != array.shape[0])
    fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\": the offsets of its ", array.samples,
         " samples do not end at its ", array.shape[0], " rows");
  return array.samples;
}

// Refuses lengths for which a layer has too few positions. The last id of a result is not fed.
void Generator::check_length(const DecodingOptions& decoding) const {
  const int64_t most = decoding.max_length - (decoding.begin_id >= 0 ? 0 : 1);
  for (const Feed& feed : step_->feeds())
    for (const auto& [limit, by] : feed.limits)
      if (feed.name == model_.sources.position->name && most > limit.limit)
        fail(TN_INVALID, ComponentName{by}, SubjectName{"max_length"}, "option \"max_length\" is ", decoding.max_length,
             ", so that ", most, " ids may be fed; layer \"", by, "\" has ", limit.limit, " positions");
}

Generated Generator::run(const DecodingOptions& decoding, const GenerationInput& input) {
  check(decoding, model_.vocabulary);
  check_length(decoding);
  if (input.sink && decoding.method == Method::kBeam)
    fail(TN_INVALID, SubjectName{"sink"}, "beam search knows no id of a result before its end; expected no sink");
  std::vector<NamedArray> feeds = input.feeds;
  const auto found =
      std::find_if(feeds.begin(), feeds.end(), [&](const NamedArray& each) { return each.name == model_.ids->name; });
  std::optional<NamedArray> prompts;
  if (found != feeds.end()) {
    prompts = *found;
    feeds.erase(found);
    for (const NamedArray& each : feeds)
      if (each.name == prompts->name)
        fail(TN_INVALID, SubjectName{each.name}, "data layer \"", each.name, "\" is fed twice");
  }
  const std::vector<ArrayView> fed =
      by_number(outside_ ? outside_->feeds() : std::vector<Feed>(), feeds, input.unknown);
  if (outside_) outside_->check_feeds(fed);
  const NamedArray* const prompt = prompts ? &*prompts : nullptr;
  const int64_t samples = count_samples(fed, prompt);
  if (!input.streams.empty() && static_cast<int64_t>(input.streams.size()) != samples)
    fail(TN_INVALID, SubjectName{"streams"}, "option \"streams\" has ", input.streams.size(), " numbers for ", samples,
         " samples");
  std::vector<std::vector<int64_t>> given = given_ids(decoding, prompt, samples);
  stopped_ = false;
  Generated result;
  const int64_t most = std::min(options_.machine.max_samples, std::max<int64_t>(samples, 1));
  make_step(most * decoding.width());
  step_->set_version(version_);
  if (outside_) outside_->set_version(version_);
  for (int64_t first = 0; first < samples; first += most) {
    const int64_t count = std::min(most, samples - first);
    Part part;
    part.first = first;
    for (int64_t i = first; i < first + count; ++i)
      part.searches.push_back(search_of(i, decoding, input, std::move(given[static_cast<size_t>(i)])));
    const SampleRange range(fed, first, count);
    if (outside_) {
      outside_->forward(range.arrays());
      for (const LayerOutput& output : model_.outside) part.outside.push_back(outside_->output(output));
    }
    run_part(part, input.poll);
    for (const Search& search : part.searches) add(result, search);
  }
  return result;
}

// given: the ids that are fed first.
Search Generator::search_of(int64_t sample, const DecodingOptions& decoding, const GenerationInput& input,
                            std::vector<int64_t> given) {
  const auto prompted = static_cast<int64_t>(given.size()) - (decoding.begin_id >= 0 ? 1 : 0);
  const int64_t stream = input.streams.empty() ? sample : input.streams[static_cast<size_t>(sample)];
  Search::Sink sink;
  if (input.sink)
    sink = [this, &input, sample](int64_t number, int64_t id) {
      stopped_ = !input.sink(sample, number, id) || stopped_;
    };
  return {decoding, std::move(given), decoding.max_length - prompted, static_cast<uint64_t>(stream), std::move(sink)};
}

void Generator::add(Generated& to, const Search& search) {
  for (const Search::Result& each : search.results()) {
    to.ids.insert(to.ids.end(), each.ids.begin(), each.ids.end());
    to.results.push_back(static_cast<int64_t>(to.ids.size()));
    to.scores.push_back(each.score);
  }
  to.samples.push_back(static_cast<int64_t>(to.scores.size()));
}

Generator::Rows Generator::rows_of(const std::vector<Search>& searches) {
  Rows rows;
  for (size_t i = 0; i < searches.size(); ++i)
    for (const Search::Row& row : searches[i].rows()) {
      rows.ids.push_back(row.id);
      rows.searches.push_back(i);
      rows.parents.push_back(row.parent);
    }
  return rows;
}

void Generator::run_part(Part& part, const std::function<bool()>& poll) {
  laid_out_.clear();
  std::vector<size_t> begins(part.searches.size(), 0);  // of each search, in the rows of the step before
  for (bool first = true;; first = false) {
    if (stopped_)
      for (Search& search : part.searches) search.stop();
    Rows rows = rows_of(part.searches);
    if (rows.ids.empty()) return;
    if (poll && !poll()) fail(TN_CANCELLED, "cancelled while ids are generated");
    for (size_t row = 0; row < rows.ids.size(); ++row) rows.parents[row] += begins[rows.searches[row]];
    for (size_t row = rows.ids.size(); row-- > 0;) begins[rows.searches[row]] = row;
    lay_out(part, rows, first);
    forward(rows);
    keep();
    choose(part, rows);
  }
}

// Keeps what the rows of the step leave for later ones.
void Generator::keep() {
  if (model_.histories.empty()) return;
  std::vector<ArrayView> values;
  for (const StepHistory& each : model_.histories) values.push_back(step_->output(each.value));
  history_.add(values);
}

// Lays out what the rows read.
void Generator::lay_out(const Part& part, const Rows& rows, bool first) {
  size_t outside = 0;
  const bool moved = laid_out_ != rows.searches;
  for (size_t i = 0; i < model_.inputs.size(); ++i) {
    const StepInput& input = model_.inputs[i];
    const ArrayView* const value = input.value.layer == nullptr ? nullptr : &part.outside[outside++];
    const bool memory = input.next.layer != nullptr;
    if (memory && !first)
      values_[i].gather(step_->output(input.next), rows.parents);
    else if (value == nullptr)
      values_[i].fill(options_.machine.compute, input.data->data()->shape, rows.ids.size(), input.initial);
    else if (memory || moved)
      values_[i].gather(*value, rows.searches);
  }
  laid_out_ = rows.searches;
  position_.assign(rows.ids.size(), first ? 0 : position_.at(0) + 1);  // all rows began with the first step
  if (!model_.histories.empty()) first ? history_.begin(rows.ids.size()) : history_.advance(rows.parents);
}

ArrayView Generator::array_of(const FeedSource& source, const Rows& rows) const {
  switch (source.kind) {
    case FeedSource::Kind::kIds:
      return {TN_I64, {static_cast<int64_t>(rows.ids.size())}, rows.ids.data()};
    case FeedSource::Kind::kPosition:
      return {TN_I64, {static_cast<int64_t>(position_.size())}, position_.data()};
    case FeedSource::Kind::kPast:
      return history_.past();
    case FeedSource::Kind::kInput:
      return values_[source.number].view();
    case FeedSource::Kind::kHistory:
      break;
  }
  return history_.value(source.number);
}

void Generator::forward(const Rows& rows) {
  arrays_.resize(sources_.size());
  for (size_t i = 0; i < sources_.size(); ++i) arrays_[i] = array_of(sources_[i], rows);
  step_->forward(arrays_, FeedMode::kLent);
}

// Reads the scores and lets the searches choose.
void Generator::choose(Part& part, const Rows& rows) {
  struct Work {
    const Part& part;
    const Rows& rows;
    const ArrayView scores;
    const bool from_logits;
    const int64_t vocabulary;
    std::vector<std::vector<double>> log_p;          // by worker
    std::vector<std::vector<Candidate>> candidates;  // by row
    std::vector<size_t> numbers;                     // of each row in its search
    std::vector<char> bad;                           // by row: 1 if its scores are invalid
    std::atomic<bool> out_of_memory{false};
  } work{part, rows, step_->output(model_.scores), options_.from_logits, model_.vocabulary, {}, {}, {}, {}};
  const size_t count = rows.ids.size();
  work.log_p.resize(static_cast<size_t>(pool_->workers));
  work.candidates.resize(count);
  work.bad.resize(count);
  for (size_t row = 0; row < count; ++row)
    work.numbers.push_back(row > 0 && rows.searches[row] == rows.searches[row - 1] ? work.numbers.back() + 1 : 0);
  const auto task = [](void* argument, int64_t index, int32_t worker) {
    auto& to = *static_cast<Work*>(argument);
    const auto row = static_cast<size_t>(index);
    const Search& search = to.part.searches[to.rows.searches[row]];
    if (!search.chooses()) return;
    try {
      std::vector<double>& log_p = to.log_p[static_cast<size_t>(worker)];
      if (!log_probabilities(to.scores, index, to.from_logits, to.vocabulary, log_p))
        to.bad[row] = 1;
      else
        to.candidates[row] = search.candidates(to.numbers[row], log_p);
    } catch (const std::bad_alloc&) {  // must not pass through the pool
      to.out_of_memory = true;
    }
  };
  pool_->for_each(pool_->self, static_cast<int64_t>(count), task, &work);
  if (work.out_of_memory) throw std::bad_alloc();
  const auto bad = std::find(work.bad.begin(), work.bad.end(), 1);
  if (bad != work.bad.end())
    fail(TN_BAD_DATA, ComponentName{layer_label(*model_.scores.layer)}, "the scores for sample ",
         part.first + static_cast<int64_t>(rows.searches[static_cast<size_t>(bad - work.bad.begin())]), " are not ",
         options_.from_logits ? "finite numbers"
                              : "probabilities; option \"from_logits\" takes numbers before a softmax");
  for (size_t row = 0; row < count;) {
    Search& search = part.searches[rows.searches[row]];
    std::vector<std::vector<Candidate>> row_candidates;
    for (const size_t number = rows.searches[row]; row < count && rows.searches[row] == number; ++row)
      row_candidates.push_back(std::move(work.candidates[row]));
    search.chooses() ? search.choose(row_candidates) : search.feed_given();
  }
}

}  // namespace tenon::host
