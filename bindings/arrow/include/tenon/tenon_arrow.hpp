// Tenon's public API for C++17 and later: tables of Arrow as feeds and as readers, and outputs as record batches, over
// tenon_arrow.h, which states the rules. SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_ARROW_HPP
#define TENON_TENON_ARROW_HPP

#include <tenon/tenon_arrow.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tenon/tenon.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {
namespace arrow {

namespace detail {

using tenon::detail::checked;

inline tn_parameters handle_of(const Parameters* parameters) {
  return parameters == nullptr ? tn_parameters{} : parameters->handle();
}

// The state behind `open` of tn_arrow_reader_options.
struct Opener {
  std::function<void(ArrowArrayStream& stream)> open;
  tenon::detail::ExceptionStore* thrown;

  static tn_status call(void* user, ArrowArrayStream* stream, tn_error* error) {
    auto& self = *static_cast<Opener*>(user);
    try {
      self.open(*stream);
      return TN_OK;
    } catch (...) {
      return self.thrown->keep(error);
    }
  }
  static void release(void* user) { delete static_cast<Opener*>(user); }
};

}  // namespace detail

// The feeds of a record batch, with its memory: for machine.forward(feeds.list()). Copies share both.
class Feeds {
 public:
  // Takes the batch, and sets its release to null. parameters: whose names number categories and texts; null: none.
  Feeds(const Layers& outputs, const Parameters* parameters, const ArrowSchema& schema, ArrowArray& batch) {
    const std::vector<tn_layer> list = tenon::detail::handles(outputs);
    tn_host* const host = outputs.empty() ? nullptr : outputs.front().host();
    const tn_arrow_feeds* feeds = nullptr;
    // Allocates first: no allocation can fail once there are feeds to release.
    const auto owner = std::make_shared<Owner>();
    detail::checked([&](tn_error* error) {
      return tn_arrow_feeds_create(host, list.data(), tenon::detail::count_of(list.size()),
                                   detail::handle_of(parameters), &schema, &batch, &feeds, error);
    });
    owner->feeds = feeds;
    owner_ = owner;
    for (std::uint32_t i = 0; i < feeds->feeds_count; ++i)
      list_.push_back({feeds->feeds[i].name, tenon::detail::array_from(feeds->feeds[i].values)});
  }

  [[nodiscard]] const std::vector<Feed>& list() const { return list_; }
  [[nodiscard]] std::int64_t samples() const { return owner_->feeds->samples; }

 private:
  struct Owner {
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() { tn_arrow_feeds_release(feeds); }
    const tn_arrow_feeds* feeds = nullptr;
  };
  std::shared_ptr<const Owner> owner_;
  std::vector<Feed> list_;
};

struct ReaderOptions {
  bool keep = false;                       // TN_ARROW_KEEP
  Layers outputs = {};                     // whose data layers the slots are; none: the columns
  std::vector<std::string> columns = {};   // without outputs: those that are read; none: all that may be slots
  const Parameters* parameters = nullptr;  // whose names number categories and texts; null: the stream's own
};

namespace detail {

inline Reader reader(const Host& host, ArrowArrayStream* stream, std::unique_ptr<Opener> opener,
                     const ReaderOptions& options) {
  const std::vector<tn_layer> outputs = tenon::detail::handles(options.outputs);
  const std::vector<const char*> columns = tenon::detail::c_texts(options.columns, "the name of a column");
  tn_arrow_reader_options c = {};
  c.size = sizeof c;
  c.flags = options.keep ? TN_ARROW_KEEP : 0;
  c.stream = stream;
  if (opener) {
    opener->thrown = &host.host_ref()->thrown;
    c.open = Opener::call;
    c.release = Opener::release;
    c.user = opener.get();
  }
  c.outputs = outputs.data();
  c.outputs_count = tenon::detail::count_of(outputs.size());
  c.columns = columns.empty() ? nullptr : columns.data();
  c.columns_count = tenon::detail::count_of(columns.size());
  c.parameters = handle_of(options.parameters);
  Reader result = tenon::detail::made<Reader>(host.host_ref(), [&](tn_reader* to, tn_error* error) {
    const tn_status status = tn_arrow_reader_create(host.get(), &c, to, error);
    if (status != TN_OK) host.host_ref()->thrown.rethrow(error->subject);
    return status;
  });
  opener.release();  // NOLINT: the reader has it
  return result;
}

}  // namespace detail

// A reader of one pass, or of any number with options.keep. Takes the stream.
[[nodiscard]] inline Reader reader(const Host& host, ArrowArrayStream& stream, const ReaderOptions& options = {}) {
  return detail::reader(host, &stream, nullptr, options);
}
// A reader that calls open(stream) for each pass. Its exceptions are rethrown by the call that reads.
[[nodiscard]] inline Reader reader(const Host& host, std::function<void(ArrowArrayStream& stream)> open,
                                   const ReaderOptions& options = {}) {
  return detail::reader(host, nullptr, std::make_unique<detail::Opener>(detail::Opener{std::move(open), nullptr}),
                        options);
}

// A column of a record batch.
struct Column {
  std::string name;
  Array values;
  std::vector<std::string> names = {};  // of its integers: a dictionary; none: numbers
};

// Writes columns as a record batch, which the caller releases. owner: keeps the values alive, which are lent until
// batch and schema are released; null: they are copied.
inline void export_batch(const std::vector<Column>& columns, ArrowSchema& schema, ArrowArray& batch,
                         std::shared_ptr<const void> owner = nullptr) {
  std::vector<std::vector<tn_text>> names(columns.size());
  std::vector<tn_arrow_column> list;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (const std::string& name : columns[i].names) names[i].push_back({name.data(), name.size()});
    list.push_back({tenon::detail::c_text(columns[i].name, "the name of a column"),
                    tenon::detail::c_array(columns[i].values), names[i].empty() ? nullptr : names[i].data(),
                    static_cast<std::int64_t>(names[i].size())});
  }
  using Owner = std::shared_ptr<const void>;
  auto kept = owner == nullptr ? nullptr : std::make_unique<Owner>(std::move(owner));
  void (*const release)(void* user) = [](void* user) { delete static_cast<Owner*>(user); };
  detail::checked([&](tn_error* error) {
    return tn_arrow_export(list.data(), tenon::detail::count_of(list.size()), kept == nullptr ? nullptr : release,
                           kept.get(), &schema, &batch, error);
  });
  kept.release();  // NOLINT: the batch has it
}

}  // namespace arrow
}  // namespace v0
}  // namespace tenon
#endif
