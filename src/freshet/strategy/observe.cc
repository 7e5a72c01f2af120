#include "strategy/observe.h"

#include "strategy/packed_rows.h"

namespace freshet::strategy {

Result<void> ObserveTogether(const Strategy::World& world, const data::Rows& mine) {
  data::Rows theirs;
  for (const auto& bytes : TRY(world.collectives.Gather(PackRows(mine)))) {
    TRY(UnpackRows(bytes, theirs));
    if (theirs.size() == 0) continue;
    TRY(world.model.Prepare(world.parameters, theirs.batch()));
    TRY(world.optimizer.Follow(world.parameters));
    world.model.Observe(world.parameters, theirs.batch(), world.optimizer);
  }
  return {};
}

}  // namespace freshet::strategy
