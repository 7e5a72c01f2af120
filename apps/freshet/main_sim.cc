// freshet-sim: the same program with SimGrid's networks, so that only this one depends on SimGrid.

#include "fabric/sim/simgrid/simgrid_flows.h"
#include "program.h"

int main(int argc, char** argv) {
  using namespace freshet;
  return cli::RunProgram(argc, argv, {.make_flows = fabric::sim::MakeSimGridFlows});
}
