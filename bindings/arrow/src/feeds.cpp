// Record batches as feeds, and columns as record batches. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "field.h"
#include "slots.h"

namespace tenon_arrow {

namespace {

// The feeds of a batch, and what they lie in.
struct Feeds : tn_arrow_feeds {
  Feeds() : tn_arrow_feeds() {}
  std::vector<Slot> slots;
  std::vector<Samples> samples;
  std::vector<tn_feed> list;
};

[[noreturn]] void refuse_null(const char* what) { throw Error(TN_MISUSE, std::string(what) + " is null", {}, what); }

std::unique_ptr<Feeds> feeds_of(tn_host* host, const tn_layer* outputs, uint32_t outputs_count,
                                tn_parameters parameters, const ArrowSchema& schema, ArrowArray& batch) {
  if (schema.release == nullptr || batch.release == nullptr) refuse_table("was taken before");
  const auto chunk = std::make_shared<HeldArray>(batch);
  check_type(&schema);
  check_array(&chunk->value, schema);
  auto feeds = std::make_unique<Feeds>();
  feeds->slots = slots_of(host, outputs, outputs_count, parameters);
  const Column table{nullptr, &schema, {Part::all(chunk, chunk->value)}};
  feeds->samples = samples_of(table, feeds->slots, 0);
  for (size_t i = 0; i < feeds->slots.size(); ++i)
    feeds->list.push_back({feeds->slots[i].name.c_str(), tenon::detail::c_array(feeds->samples[i].array)});
  static_cast<tn_arrow_feeds&>(*feeds) = {sizeof(tn_arrow_feeds), tenon::detail::count_of(feeds->list.size()),
                                          feeds->list.data(), batch.length};
  chunk->take(batch);
  return feeds;
}

FieldRef exported(const tn_arrow_column& column, const Memory& lent) {
  if (column.name == nullptr) refuse_null("the name of a column");
  if (column.names_count < 0 || (column.names == nullptr && column.names_count > 0))
    throw Error(TN_INVALID,
                std::string("column \"") + column.name + "\" has names_count " + std::to_string(column.names_count) +
                    " of names that are null",
                "export", column.name);
  const FieldRef names = column.names == nullptr ? nullptr : texts_field("", column.names, column.names_count);
  const tenon::Array array = tenon::detail::array_from(column.values);
  if (lent != nullptr) return field_of(column.name, array, lent, names);
  const auto [copy, memory] = copy_of(column.name, array);
  return field_of(column.name, copy, memory, names);
}

// What is lent by the caller. Its end calls the caller's function, once it is armed.
struct Loan {
  Loan() = default;
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() {
    if (release != nullptr) release(user);
  }
  void (*release)(void* user) = nullptr;
  void* user = nullptr;
};

}  // namespace

}  // namespace tenon_arrow

using namespace tenon_arrow;

tn_status tn_arrow_feeds_create(tn_host* host, const tn_layer* outputs, uint32_t outputs_count,
                                tn_parameters parameters, const ArrowSchema* schema, ArrowArray* batch,
                                const tn_arrow_feeds** feeds, tn_error* error) {
  return guarded(error, [&] {
    if (schema == nullptr) refuse_null("schema");
    if (batch == nullptr) refuse_null("batch");
    if (feeds == nullptr) refuse_null("feeds");
    *feeds = feeds_of(host, outputs, outputs_count, parameters, *schema, *batch).release();
  });
}

void tn_arrow_feeds_release(const tn_arrow_feeds* feeds) { delete static_cast<const Feeds*>(feeds); }

tn_status tn_arrow_export(const tn_arrow_column* columns, uint32_t columns_count, void (*release)(void* user),
                          void* user, ArrowSchema* schema, ArrowArray* batch, tn_error* error) {
  return guarded(error, [&] {
    if (columns == nullptr && columns_count > 0) refuse_null("columns");
    if (schema == nullptr) refuse_null("schema");
    if (batch == nullptr) refuse_null("batch");
    const auto loan = release == nullptr ? nullptr : std::make_shared<Loan>();
    std::vector<FieldRef> fields;
    for (uint32_t i = 0; i < columns_count; ++i) fields.push_back(exported(columns[i], loan));
    Field table = *table_of(std::move(fields));
    table.memory = {loan};  // also of a table without columns
    const auto root = std::make_shared<const Field>(std::move(table));
    Held<ArrowSchema> type;
    ArrowArray values = {};
    write_schema(root, &type.value);
    write_array(root, &values);
    if (loan != nullptr) {  // from here on nothing fails
      loan->release = release;
      loan->user = user;
    }
    *batch = values;
    *schema = type.value;
    type.value.release = nullptr;
  });
}
