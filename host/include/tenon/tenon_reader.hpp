// Readers of tenon.hpp: of plugins and of the application, and their wrappers. Include <tenon/tenon.hpp>.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_READER_HPP
#define TENON_TENON_READER_HPP

#include <tenon/tenon_lease.h>

#include <tenon/tenon_base.hpp>
#include <tenon/tenon_reader_options.hpp>
#include <tenon/tenon_sample.hpp>

namespace tenon {
inline namespace v0 {

// A stream of samples. The wrappers consume the reader they are called on: std::move(reader).batch(128). If a wrapper
// fails, the reader is unchanged.
class Reader : public detail::Owned<tn_reader, tn_reader_release> {
 public:
  using Owned::Owned;
  // A new order in each pass. buffer 0: over all samples.
  [[nodiscard]] Reader shuffle(uint64_t seed, int64_t buffer = 0) && {
    return wrapped([&](tn_reader* made, tn_error* error) {
      return tn_reader_shuffle(host(), handle(), buffer, seed, made, error);
    });
  }
  [[nodiscard]] Reader batch(int64_t samples, bool drop_last = false) && {
    return wrapped([&](tn_reader* made, tn_error* error) {
      return tn_reader_batch(host(), handle(), samples, drop_last ? 1 : 0, made, error);
    });
  }
  // Minibatches of samples of similar length.
  [[nodiscard]] Reader bucket(const BucketOptions& options) && {
    tn_bucket_options c = {};
    detail::OptionLists lists;
    detail::fill(c, options, lists);
    return wrapped(
        [&](tn_reader* made, tn_error* error) { return tn_reader_bucket(host(), handle(), &c, made, error); });
  }
  // Reads up to `minibatches` minibatches ahead, on a host thread.
  [[nodiscard]] Reader buffered(int64_t minibatches) && {
    return wrapped([&](tn_reader* made, tn_error* error) {
      return tn_reader_buffered(host(), handle(), minibatches, made, error);
    });
  }
  // The samples i of each pass with i % shards == number.
  [[nodiscard]] Reader shard(int64_t number, int64_t shards) && {
    return wrapped([&](tn_reader* made, tn_error* error) {
      return tn_reader_shard(host(), handle(), number, shards, made, error);
    });
  }
  // One part of the samples: the `fraction` that is held out, or all others.
  [[nodiscard]] Reader split(double fraction, uint64_t seed, bool held_out) && {
    return wrapped([&](tn_reader* made, tn_error* error) {
      return tn_reader_split(host(), handle(), fraction, seed, held_out ? 1 : 0, made, error);
    });
  }
  // Changes the images of a slot at random, by seed, pass and sample.
  [[nodiscard]] Reader augment(const AugmentOptions& options) && {
    tn_augment_options c = {};
    detail::OptionLists lists;
    detail::fill(c, options, lists);
    return wrapped(
        [&](tn_reader* made, tn_error* error) { return tn_reader_augment(host(), handle(), &c, made, error); });
  }
  // Selects slots and renames them: {slot, name}.
  [[nodiscard]] Reader choose(const std::vector<std::pair<std::string, std::string>>& slots) && {
    std::vector<const char*> from, to;
    for (const auto& [slot, name] : slots) {
      from.push_back(detail::c_text(slot, "a slot to choose"));
      to.push_back(detail::c_text(name, "the new name of a slot"));
    }
    return wrapped([&](tn_reader* made, tn_error* error) {
      return tn_reader_choose(host(), handle(), from.data(), to.data(), detail::count_of(from.size()), made, error);
    });
  }
  // Computes new samples: function(from, i, sample) fills `sample` from sample i of `from`, the slots of this reader
  // with one or more samples. It is called under the rules of Host::reader.
  template <typename Function>
  [[nodiscard]] Reader map(const Schema& schema, Function function) && {
    const detail::Slots slots(schema);
    auto user = std::make_unique<detail::UserObject<Function>>(host_ref()->thrown, schema, std::move(function));
    tn_map_options c = {};
    c.size = sizeof c;
    c.slots_count = slots.size();
    c.slots = slots.data();
    c.user = user.get();
    c.map = detail::map_of<Function>;
    c.release = detail::UserObject<Function>::release;
    Reader result =
        wrapped([&](tn_reader* made, tn_error* error) { return tn_reader_map(host(), handle(), &c, made, error); });
    user.release();  // NOLINT: the host has it
    return result;
  }
  [[nodiscard]] Reader first_n(int64_t samples) && {
    return wrapped(
        [&](tn_reader* made, tn_error* error) { return tn_reader_first_n(host(), handle(), samples, made, error); });
  }
  [[nodiscard]] std::string describe() const {
    return detail::written([this](tn_write write, void* user, tn_error* error) {
      return tn_reader_describe(host(), handle(), write, user, error);
    });
  }
  // What a model keeps of the slots: names of integers and columns as far as the reader knows them, types and shapes.
  [[nodiscard]] std::vector<Names> names() const {
    return detail::names_from([this](tn_names_sink sink, void* user, tn_error* error) {
      return tn_reader_read_names(host(), handle(), sink, user, error);
    });
  }
  // The number of the record of the data that sample `index` of a pass is, as tn_reader_record documents.
  [[nodiscard]] int64_t record(int64_t index) const {
    int64_t result = 0;
    detail::checked([&](tn_error* error) { return tn_reader_record(host(), handle(), index, &result, error); });
    return result;
  }
  // The number of records that are left out, such as empty lines; -1 if unknown.
  [[nodiscard]] int64_t left_out() const {
    int64_t result = 0;
    detail::checked([&](tn_error* error) { return tn_reader_left_out(host(), handle(), &result, error); });
    return result;
  }
  // The text of a column of the record of a sample, as tn_reader_text documents.
  [[nodiscard]] std::string text(int64_t index, const std::string& column) const {
    return detail::written([&](tn_write write, void* user, tn_error* error) {
      return tn_reader_text(host(), handle(), index, detail::c_text(column, "column"), write, user, error);
    });
  }
  // The next minibatch: one array per slot, borrowed until the next call on this reader; empty at the end of a pass.
  [[nodiscard]] std::vector<Array> next() const& {
    uint32_t slots = 0;
    detail::checked([&](tn_error* error) { return tn_reader_slots_count(host(), handle(), &slots, error); });
    std::vector<tn_array> arrays(slots);
    bool end = false;
    detail::checked(*host_ref(), [&](tn_error* error) {
      const tn_status status = tn_reader_next(host(), handle(), arrays.data(), slots, error);
      end = status == TN_END;
      return end ? static_cast<tn_status>(TN_OK) : status;
    });
    std::vector<Array> result;
    for (size_t i = 0; i < slots && !end; ++i) result.push_back(detail::array_from(arrays[i]));
    return result;
  }
  std::vector<Array> next() && = delete;  // the arrays would dangle
  // The number of the pass, from 0, and the number of its samples read so far.
  struct Position {
    int64_t pass = 0, samples = 0;
  };
  [[nodiscard]] Position position() const {
    Position result;
    detail::checked(
        [&](tn_error* error) { return tn_reader_position(host(), handle(), &result.pass, &result.samples, error); });
    return result;
  }
  // Continues from a position.
  void seek(const Position& to) const {
    detail::checked(*host_ref(),
                    [&](tn_error* error) { return tn_reader_seek(host(), handle(), to.pass, to.samples, error); });
  }

 private:
  template <typename Call>
  Reader wrapped(Call call) {
    Reader result = detail::made<Reader>(host_ref(), call);
    forget();
    return result;
  }
};

namespace detail {
using Join = tn_status (*)(tn_host*, const tn_reader*, uint32_t, tn_reader*, tn_error*);
inline Reader combined(std::vector<Reader> of, Join join) {
  if (of.empty()) throw Error(TN_INVALID, "no readers to join; expected at least 1");
  std::vector<tn_reader> handles;
  for (const Reader& reader : of) handles.push_back(reader.handle());
  const HostRef host = of.front().host_ref();
  Reader result = made<Reader>(host, [&](tn_reader* to, tn_error* error) {
    return join(host->host, handles.data(), count_of(handles.size()), to, error);
  });
  for (Reader& reader : of) reader.forget();
  return result;
}
}  // namespace detail

// Several readers as one; they are consumed. chain: one after the other; interleave: one sample of each in turn;
// compose: their slots side by side.
[[nodiscard]] inline Reader chain(std::vector<Reader> of) { return detail::combined(std::move(of), tn_reader_chain); }
[[nodiscard]] inline Reader interleave(std::vector<Reader> of) {
  return detail::combined(std::move(of), tn_reader_interleave);
}
[[nodiscard]] inline Reader compose(std::vector<Reader> of) {
  return detail::combined(std::move(of), tn_reader_compose);
}

}  // namespace v0
}  // namespace tenon
#endif
