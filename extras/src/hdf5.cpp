// A reader of HDF5: datasets whose first dimension is that of the samples. SPDX-License-Identifier: Apache-2.0
#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "slots.h"

namespace {

using extras::SlotText;

// Debian's libhdf5 is not made for threads, and prints errors unless it is told not to: one call at a time in the
// process, quietly.
class Library {
 public:
  Library() : lock_(mutex()) {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

  // The reason of the last failure, as the library has it.
  [[nodiscard]] static std::string reason() {
    std::string result = "HDF5 refuses it";
    H5Ewalk2(
        H5E_DEFAULT, H5E_WALK_UPWARD,
        [](unsigned number, const H5E_error2_t* error, void* user) {
          if (number == 0 && error->desc != nullptr) *static_cast<std::string*>(user) = error->desc;
          return herr_t{0};
        },
        &result);
    return result.substr(0, result.find(": time ="));  // what follows is of no use: addresses, numbers of files
  }

 private:
  static std::mutex& mutex() {
    static std::mutex calls;
    return calls;
  }
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

// An object of the library, closed at its end, which is within a Library.
class Id {
 public:
  Id() = default;
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  [[nodiscard]] hid_t get() const { return id_; }
  [[nodiscard]] bool valid() const { return id_ >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  herr_t (*close_)(hid_t) = nullptr;
};

// The type of the elements of a dataset in memory.
struct Elements {
  tn_dtype dtype = 0;  // 0: none that is read
  hid_t type = H5I_INVALID_HID;
  bool unsigned64 = false;  // of TN_I64: it may have numbers beyond
};
Elements elements_of(hid_t type) {
  const size_t bytes = H5Tget_size(type);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_FLOAT && bytes <= 4) return {TN_F32, H5T_NATIVE_FLOAT};
  if (kind == H5T_FLOAT && bytes == 8) return {TN_F64, H5T_NATIVE_DOUBLE};
  if (kind != H5T_INTEGER) return {};
  const bool positive = H5Tget_sign(type) == H5T_SGN_NONE;
  switch (bytes) {
    case 1:
      return positive ? Elements{TN_U8, H5T_NATIVE_UINT8} : Elements{TN_I8, H5T_NATIVE_INT8};
    case 2:
      return positive ? Elements{TN_U16, H5T_NATIVE_UINT16} : Elements{TN_I16, H5T_NATIVE_INT16};
    case 4:
      return positive ? Elements{TN_U32, H5T_NATIVE_UINT32} : Elements{TN_I32, H5T_NATIVE_INT32};
    case 8:  // HDF5 would clamp those beyond int64, so they are read as they are, and refused
      return {TN_I64, positive ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, positive};
    default:
      return {};
  }
}

// A dataset of one file, and the rows of it that were read last.
struct Dataset {
  Id id, type;  // the type that its elements have in the file
  Elements elements;
  bool lists = false;  // of variable length
  int64_t rows = 0, row_elements = 1;
  int64_t block_rows = 1;      // that are read together in the order of the file
  std::vector<int64_t> shape;  // of a row
  std::vector<char> block;
  int64_t first = 0, last = 0;  // rows of the block
};

struct File {
  std::string path;
  Id id;
  int64_t start = 0;  // the number of its first sample
  std::vector<Dataset> datasets;
};

class Hdf5 {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("extras.hdf5", "datasets of HDF5 files; their first dimension is that of the samples");
    d.attribute(
        tn::strings_attribute("files").required().doc("the files, one after the other; patterns such as data/*.h5"));
    d.attribute(tn::strings_attribute("datasets")
                    .doc("slots, such as \"image = /train/images\", \"label = /train/labels: i64 < 10\"; default: the "
                         "datasets of the root"));
    d.attribute(
        tn::int_attribute("cache_bytes", 64 << 20).at_least(0).doc("for each dataset: of chunks that are unpacked"));
  }

  explicit Hdf5(const tn::ReaderOpen& open) : cache_(open.attributes().integer("cache_bytes")), shard_(open.shard()) {
    const Library library;
    try {
      for (const std::string& path : extras::files_of(open, "files")) open_file(path);
      choose_datasets(open);
      for (File& file : files_) {
        extras::check_cancelled(open.cancel());
        open_datasets(file);
      }
      if (count_ == 0) throw tn::Failure(TN_BAD_DATA, files_[0].path, "has no samples");
      make_slots();
    } catch (...) {
      files_.clear();  // within the library
      throw;
    }
  }
  Hdf5(const Hdf5&) = delete;
  Hdf5& operator=(const Hdf5&) = delete;
  ~Hdf5() {
    const Library library;
    files_.clear();
  }

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return shard_.samples(count_); }

  void read(int64_t index, tn::Samples& to) {
    const int64_t sample = shard_.sample(index);
    File& file = extras::part_of(files_, sample);
    const int64_t row = sample - file.start;
    for (size_t slot = 0; slot < slots_.size(); ++slot) try {
        if (file.datasets[slot].lists)
          write_list(file, slot, row, to);
        else
          write(file.datasets[slot], row_of(file, slot, row), file.datasets[slot].row_elements, slot, to.dense(slot));
      } catch (const extras::Unfit& unfit) {
        throw tn::Failure(TN_BAD_DATA, place(file, slot) + ", row " + std::to_string(row), unfit.why);
      }
  }

 private:
  static constexpr int64_t kBlockBytes = 1 << 20;

  [[nodiscard]] std::string place(const File& file, size_t slot) const {
    return file.path + ", dataset \"" + texts_[slot].sources[0] + "\"";
  }

  void open_file(const std::string& path) {
    File& file = files_.emplace_back();
    file.path = path;
    file.id = Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (file.id.valid()) return;
    const std::string why = Library::reason();
    const bool absent = why.find("No such file") != std::string::npos;
    const std::string reason = absent ? "does not exist" : "is not an HDF5 file, or damaged: " + why;
    files_.pop_back();
    throw tn::Failure(absent ? TN_NOT_FOUND : TN_BAD_DATA, path, reason);
  }

  // Takes the datasets that are declared, or those of the root of the first file.
  void choose_datasets(const tn::ReaderOpen& open) {
    if (open.attributes().has("datasets")) {
      texts_ = extras::parse_slots(open.attributes().texts("datasets"), "datasets");
    } else {
      std::vector<std::string> names;
      H5Literate(
          files_[0].id.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
          [](hid_t, const char* name, const H5L_info_t*, void* user) {
            static_cast<std::vector<std::string>*>(user)->emplace_back(name);
            return herr_t{0};
          },
          &names);
      for (const std::string& name : names) {
        const Id object(H5Oopen(files_[0].id.get(), name.c_str(), H5P_DEFAULT), H5Oclose);
        if (object.valid() && H5Iget_type(object.get()) == H5I_DATASET) texts_.push_back({name, {"/" + name}});
      }
    }
    extras::keep_needed(texts_, open);
    if (texts_.empty()) throw tn::Failure(TN_BAD_DATA, files_[0].path, "has no datasets in its root");
    for (SlotText& text : texts_) {
      if (text.sources.size() > 1 || text.category || text.shaped)
        throw tn::Failure(
            TN_INVALID, "datasets",
            "slot \"" + text.slot + "\" has several datasets, a shape or categories; expected one dataset of numbers");
      if (text.dtype == 0) text.dtype = open.dtype(text.slot);
    }
  }

  void open_datasets(File& file) {
    file.start = count_;
    const Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    H5Pset_chunk_cache(access.get(), 12421, static_cast<size_t>(cache_), 1);
    for (size_t slot = 0; slot < texts_.size(); ++slot) {
      Dataset& set = file.datasets.emplace_back();
      const auto refuse = [&](tn_status code, const std::string& why) {
        throw tn::Failure(code, place(file, slot), why);
      };
      set.id = Id(H5Dopen2(file.id.get(), texts_[slot].sources[0].c_str(), access.get()), H5Dclose);
      if (!set.id.valid()) refuse(TN_NOT_FOUND, "does not exist");
      set.type = Id(H5Dget_type(set.id.get()), H5Tclose);
      const Id space(H5Dget_space(set.id.get()), H5Sclose);
      const int rank = H5Sget_simple_extent_ndims(space.get());
      if (rank < 1) refuse(TN_INVALID, "is one value; expected a first dimension of samples");
      std::vector<hsize_t> extents(static_cast<size_t>(rank));
      H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
      set.rows = static_cast<int64_t>(extents[0]);
      set.shape.assign(extents.begin() + 1, extents.end());
      set.row_elements = extras::elements_of(texts_[slot].slot, set.shape);
      set.lists = H5Tget_class(set.type.get()) == H5T_VLEN;
      const Id element(set.lists ? H5Tget_super(set.type.get()) : H5Tcopy(set.type.get()), H5Tclose);
      const bool truth = H5Tget_class(element.get()) == H5T_ENUM;  // as h5py stores truth values
      const Id integer(truth ? H5Tget_super(element.get()) : H5Tcopy(element.get()), H5Tclose);
      set.elements = ::elements_of(integer.get());
      if (set.elements.dtype == 0 || (truth && tn_dtype_bytes(set.elements.dtype) != 1))
        refuse(TN_INVALID, "has elements that are not numbers of at most 64 bits");
      if (set.lists && rank > 1) refuse(TN_INVALID, "has lists in more than one dimension");
      if (set.lists != texts_[slot].sequence && texts_[slot].sequence)
        refuse(TN_INVALID, "has no lists of variable length");
      choose_block(set);
      if (set.rows != file.datasets[0].rows)
        refuse(TN_BAD_DATA, "has " + std::to_string(set.rows) + " rows; dataset \"" + texts_[0].sources[0] + "\" has " +
                                std::to_string(file.datasets[0].rows));
      const Dataset& model = files_[0].datasets[slot];
      if (set.shape != model.shape || set.elements.dtype != model.elements.dtype || set.lists != model.lists)
        refuse(TN_BAD_DATA, "has elements or rows of another form than in " + files_[0].path);
    }
    count_ += file.datasets[0].rows;
  }

  // Blocks are whole chunks of at most a MiB.
  static void choose_block(Dataset& set) {
    const int64_t row_bytes =
        std::max<int64_t>(set.row_elements * static_cast<int64_t>(tn_dtype_bytes(set.elements.dtype)), 1);
    set.block_rows = std::max<int64_t>(kBlockBytes / row_bytes, 1);
    const Id creation(H5Dget_create_plist(set.id.get()), H5Pclose);
    if (H5Pget_layout(creation.get()) != H5D_CHUNKED) return;
    std::vector<hsize_t> chunk(set.shape.size() + 1);
    H5Pget_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
    const auto rows = static_cast<int64_t>(chunk[0]);
    if (set.block_rows > rows) set.block_rows -= set.block_rows % rows;
  }

  void make_slots() {
    for (size_t i = 0; i < texts_.size(); ++i) {
      SlotText& text = texts_[i];
      const Dataset& set = files_[0].datasets[i];
      if (text.dtype == 0) text.dtype = set.elements.dtype == TN_F64 ? TN_F32 : set.elements.dtype;
      tn::ReaderSlot slot{text.slot, text.dtype, set.shape, text.limit};
      if (set.lists) slot.storage = TN_RAGGED;
      slots_.push_back(std::move(slot));
    }
  }

  // Reads rows as they are; `to` has room for them.
  void read_rows(const File& file, size_t slot, int64_t first, int64_t count, void* to) {
    const Library library;
    const Dataset& set = file.datasets[slot];
    std::vector<hsize_t> start(set.shape.size() + 1), extents(set.shape.begin(), set.shape.end());
    start[0] = static_cast<hsize_t>(first);
    extents.insert(extents.begin(), static_cast<hsize_t>(count));
    const Id memory(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
    const Id space(H5Dget_space(set.id.get()), H5Sclose);
    const bool chosen =
        H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, extents.data(), nullptr) >= 0;
    const bool truth = !set.lists && H5Tget_class(set.type.get()) == H5T_ENUM;
    const hid_t stored = truth ? set.type.get() : set.elements.type;
    const Id list(set.lists ? H5Tvlen_create(stored) : H5Tcopy(stored), H5Tclose);
    if (!chosen || H5Dread(set.id.get(), list.get(), memory.get(), space.get(), H5P_DEFAULT, to) < 0)
      throw extras::Unfit{"cannot be read: " + Library::reason()};
  }

  // Returns a row: of the block, which moves on with reading in order, or alone.
  const char* row_of(File& file, size_t slot, int64_t row) {
    Dataset& set = file.datasets[slot];
    const int64_t bytes = set.row_elements * static_cast<int64_t>(tn_dtype_bytes(set.elements.dtype));
    if (row < set.first || row >= set.last) {
      const bool in_order = row >= set.last && row - set.last < shard_.count;
      const int64_t count = in_order ? std::min(set.block_rows, set.rows - row) : 1;
      set.block.resize(static_cast<size_t>(std::max<int64_t>(count * bytes, 1)));
      set.first = set.last = 0;
      read_rows(file, slot, row, count, set.block.data());
      set.first = row;
      set.last = row + count;
    }
    return set.block.data() + (row - set.first) * bytes;
  }

  // Writes elements of the file as those of the slot.
  void write(const Dataset& set, const char* from, int64_t count, size_t slot, void* to) const {
    const SlotText& text = texts_[slot];
    const size_t width = tn_dtype_bytes(set.elements.dtype);
    const bool wide = set.elements.unsigned64;
    if (text.dtype == set.elements.dtype && !wide) {
      std::memcpy(to, from, static_cast<size_t>(count) * width);
      return extras::check_below(text.dtype, to, extras::is_float(text.dtype) ? 0 : count, text.limit);
    }
    for (int64_t i = 0; i < count; ++i) {
      const char* const at = from + static_cast<size_t>(i) * width;
      if (extras::is_float(set.elements.dtype)) {
        float single = 0;
        double number = 0;
        std::memcpy(width == 4 ? static_cast<void*>(&single) : &number, at, width);
        extras::put(text.dtype, to, i, width == 4 ? static_cast<double>(single) : number);
      } else {
        int64_t number = 0;
        std::memcpy(&number, at, width);  // the lowest bytes come first
        if (wide && number < 0) throw extras::Unfit{std::to_string(static_cast<uint64_t>(number)) + " is beyond int64"};
        const unsigned shift = 64 - 8 * static_cast<unsigned>(width);
        if (tn_dtype_code(set.elements.dtype) == 0)
          number = static_cast<int64_t>(static_cast<uint64_t>(number) << shift) >> shift;
        extras::put(text.dtype, to, i, number, text.limit);
      }
    }
  }

  void write_list(const File& file, size_t slot, int64_t row, tn::Samples& to) {
    const Dataset& set = file.datasets[slot];
    hvl_t list = {};
    read_rows(file, slot, row, 1, &list);
    const std::unique_ptr<void, void (*)(void*)> owner(list.p, [](void* memory) { H5free_memory(memory); });
    numbers_.resize(list.len * tn_dtype_bytes(texts_[slot].dtype));
    write(set, static_cast<const char*>(list.p), static_cast<int64_t>(list.len), slot, numbers_.data());
    to.rows(slot, numbers_.data(), static_cast<int64_t>(list.len));
  }

  int64_t cache_;
  tn::Shard shard_;
  std::vector<File> files_;
  std::vector<SlotText> texts_;
  std::vector<tn::ReaderSlot> slots_;
  int64_t count_ = 0;  // of all samples
  std::vector<char> numbers_;
};

void describe(tn::Plugin& plugin) {
  plugin.about("org.tenon.extras.hdf5", EXTRAS_VERSION, "Reads HDF5 files", "Apache-2.0");
  plugin.reader<Hdf5>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
