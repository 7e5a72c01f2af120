#include <string>
#include <vector>

#include "fabric/collectives/algorithms.h"

namespace freshet::fabric {
namespace {

constexpr std::string_view kDoing = "making a sum over hosts";
constexpr Tag kWithin = 0;
constexpr Tag kAmong = 16;                     // apart, as each team uses a few tags of its own
constexpr std::size_t kRingFrom = 256 * 1024;  // bytes: below, the number of steps counts, above the bytes

struct Hosts {
  std::vector<int> mine;     // ranks on this member's host, ascending; the first leads
  std::vector<int> leaders;  // of all hosts, ascending
};

Hosts HostsOf(const Fabric& fabric) {
  Hosts hosts;
  std::vector<std::string> seen;
  for (int rank = 0; rank < fabric.size(); ++rank) {
    const std::string& host = fabric.host(rank);
    if (host == fabric.host(fabric.rank())) hosts.mine.push_back(rank);
    bool known = false;
    for (const std::string& other : seen) known = known || other == host;
    if (known) continue;
    seen.push_back(host);
    hosts.leaders.push_back(rank);
  }
  return hosts;
}

}  // namespace

Result<void> HierarchicalAllReduce(Fabric& fabric, Tag tag, std::span<float> values, std::size_t piece_bytes) {
  const Hosts hosts = HostsOf(fabric);
  Transfers within(fabric, tag + kWithin, kDoing, hosts.mine);
  TRY(CentralReduce(within, values));
  if (within.me() == 0) {
    Transfers among(fabric, tag + kAmong, kDoing, hosts.leaders);
    TRY(values.size_bytes() < kRingFrom ? HalvingAllReduce(among, values) : RingAllReduce(among, values, piece_bytes));
  }
  return CentralBroadcast(within, values);
}

}  // namespace freshet::fabric
