#include <tenon/tenon.hpp>

tenon::Layer moved_and_doubled(const tenon::Host& host, const tenon::Layer& hidden) {
  const tenon::Layer offset =
      host.layer("parameter", {hidden}, {{"param.value.init", "normal"}, {"param.value.init_std", 0.01}}, "offset");
  const tenon::Layer two = host.layer("constant", {hidden}, {{"value", 2}}, "two");
  const tenon::Layer moved = host.layer("add", {hidden, offset}, {}, "moved");
  return host.layer("mul", {moved, two}, {}, "doubled");
}
