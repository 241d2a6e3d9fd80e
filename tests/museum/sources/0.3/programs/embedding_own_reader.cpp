#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>

namespace {

// Points x of [-1, 1), and whether each lies within 0.5 of 0. Has a known number of samples and reads them by index.
class Band {
 public:
  static tn_status open(const tn_reader_open* open, void** instance) {
    return tn::guarded(open->errors, [&] { *instance = new Band(*open); });
  }
  static void close(void* self) { delete &of(self); }
  static const tn_reader_schema* schema(void* self) { return &of(self).schema_; }
  static int64_t samples(void* self) { return of(self).mine_; }
  static tn_status read_at(void* self, const int64_t* indices, int64_t count, const tn_reader_buffers* to) {
    for (int64_t i = 0; i < count; ++i) of(self).make(indices[i], to, i);
    return TN_OK;
  }
  static tn_status next(void* self, const tn_reader_buffers* to, int64_t* count) {
    Band& band = of(self);
    *count = 0;
    if (band.position_ == band.mine_) {
      band.position_ = 0;
      return TN_END;
    }
    if (to->capacity < 1) return TN_NEED_CAPACITY;
    while (*count < to->capacity && band.position_ < band.mine_) band.make(band.position_++, to, (*count)++);
    return TN_OK;
  }
  static int64_t position(void* self) { return of(self).position_; }
  static tn_status seek(void* self, int64_t position) {
    of(self).position_ = position;
    return TN_OK;
  }

 private:
  explicit Band(const tn_reader_open& open)
      : all_(tn::Attributes(open.attributes).integer("samples")),
        shard_(open.shard),
        shards_(open.shards),
        mine_((all_ - shard_ + shards_ - 1) / shards_) {}
  static Band& of(void* self) { return *static_cast<Band*>(self); }
  void make(int64_t index, const tn_reader_buffers* to, int64_t place) const {
    const double x = 2 * static_cast<double>(index * shards_ + shard_) / static_cast<double>(all_) - 1;
    static_cast<float*>(to->data[0])[place] = static_cast<float>(x);
    static_cast<int64_t*>(to->data[1])[place] = std::fabs(x) < 0.5 ? 1 : 0;
  }

  int64_t all_, shard_, shards_, mine_, position_ = 0;
  int64_t one_ = 1;
  tn_slot x_ = {sizeof(tn_slot), TN_F32, "x", TN_DENSE, 1, &one_, -1, 0, 0, nullptr};
  tn_slot inside_ = {sizeof(tn_slot), TN_I64, "inside", TN_DENSE, 0, nullptr, 2, 0, 0, nullptr};
  const tn_slot* slots_[2] = {&x_, &inside_};
  tn_reader_schema schema_ = {sizeof(tn_reader_schema), 2, slots_};
};

const tn_reader_type* band_type() {
  static const tn::Attribute samples = tn::int_attribute("samples", 1000).at_least(1).doc("how many points");
  static const tn_attribute table = samples.get();
  static const tn_attribute* const attributes[] = {&table};
  static const tn_reader_description description = {
      sizeof description, 1, "app.band", "Points, and whether each lies within 0.5 of 0", attributes, 0, 0};
  static const tn_reader_type type = {
      sizeof type,    0,           &description,    &Band::open, &Band::close, &Band::schema, &Band::samples,
      &Band::read_at, &Band::next, &Band::position, &Band::seek,  nullptr,      nullptr};
  return &type;
}

void describe(tn::Plugin& plugin) {
  plugin.about("org.example.app", "1.0.0", "What the application brings", "MIT");
  plugin.reader(band_type());
}

}  // namespace

int main() try {
  const tenon::Host host;
  host.add_plugin(tn::entry<describe>());

  const tenon::Layer x = host.data({"x", TN_F32, {1}});
  const tenon::Layer inside = host.data({"inside", TN_I64, {}, 2});
  const tenon::Layer hidden = host.layer("fc", {x}, {{"size", 32}, {"act", "tanh"}});
  const tenon::Layer score = host.layer("fc", {hidden}, {{"size", 2}});
  const tenon::Layer cost = host.layer("cross_entropy", {score, inside}, {{"from_logits", true}});

  tenon::TrainOptions options;
  options.outputs = {cost};
  options.parameters = host.parameters({cost}, 1);
  options.updater = host.updater("adam", {{"learning_rate", 0.03}});
  options.reader = host.reader("app.band", {{"samples", 2000}}).shuffle(1).batch(50);
  options.passes = 20;
  tenon::train(options);

  options.outputs = {score};
  options.reader = host.reader("app.band", {{"samples", 300}}).batch(100);
  int64_t samples = 0, right = 0;
  tenon::infer(options, [&](const std::vector<tenon::Array>& outputs) {
    const auto* scores = static_cast<const float*>(outputs[0].data);  // [samples, 2], borrowed during the call
    for (int64_t i = 0; i < outputs[0].shape[0]; ++i, ++samples) {
      const double at = 2 * static_cast<double>(samples) / 300 - 1;
      right += (scores[2 * i + 1] > scores[2 * i]) == (std::fabs(at) < 0.5) ? 1 : 0;
    }
    return true;  // go on
  });
  std::printf("%d of %d right\n", static_cast<int>(right), static_cast<int>(samples));
  return samples == 300 && right > 280 ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
