#include "fabric/sim/simgrid/simgrid_flows.h"

#include <cmath>
#include <csignal>
#include <exception>
#include <optional>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/fiber.h"
#include "base/str.h"

namespace freshet::fabric::sim {
namespace {

namespace s4u = simgrid::s4u;
using simgrid::kernel::routing::NetPoint;
using simgrid::kernel::timer::Timer;

// The nodes of a platform and what joins them, made for SimGrid.
class Map {
 public:
  explicit Map(const Platform& platform) : platform_(platform) {
    s4u::NetZone* const root = s4u::create_star_zone("root");
    if (platform.topology == "star") Star(root, "star", platform.nodes);
    if (platform.topology == "fat-tree") FatTree(root);
    if (platform.topology == "torus") Torus(root);
    if (platform.topology == "dragonfly") Dragonfly(root);
    if (platform.topology == "regions") Regions(root);
    root->seal();
  }
  const std::vector<s4u::Host*>& hosts() const { return hosts_; }

 private:
  double rate() const { return platform_.link_gbit * 1e9 / 8 * platform_.share; }
  double latency() const { return platform_.link_us * 1e-6; }

  s4u::Host* NewHost(s4u::NetZone* zone) {
    hosts_.push_back(zone->create_host(Str("node", hosts_.size()), 1e9));
    hosts_.back()->seal();
    return hosts_.back();
  }
  // Zones of the last rows may have more places than there are nodes.
  s4u::ClusterCallbacks Places() {
    return s4u::ClusterCallbacks([this](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long) {
      return std::make_pair(NewHost(zone)->get_netpoint(), static_cast<NetPoint*>(nullptr));
    });
  }

  s4u::NetZone* Star(s4u::NetZone* parent, const std::string& name, int nodes) {
    s4u::NetZone* const zone = s4u::create_star_zone(name);
    zone->set_parent(parent);
    for (int node = 0; node < nodes; ++node) {
      s4u::Host* const host = NewHost(zone);
      s4u::SplitDuplexLink* const link = zone->create_split_duplex_link(Str("link", hosts_.size() - 1), rate());
      link->set_latency(latency())->seal();
      zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {{link, s4u::LinkInRoute::Direction::UP}}, true);
    }
    return zone;
  }
  void FatTree(s4u::NetZone* root) {
    const std::vector<int> shape = PartsOf(platform_.shape, ':');
    const auto leaf = static_cast<unsigned>(std::min(shape[0], platform_.nodes)), up = static_cast<unsigned>(shape[1]);
    const unsigned leaves = (static_cast<unsigned>(platform_.nodes) + leaf - 1) / leaf;
    s4u::create_fatTree_zone("tree", root, {2, {leaf, leaves}, {1, up}, {1, 1}}, Places(), rate(), latency(),
                             s4u::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
  }
  void Torus(s4u::NetZone* root) {
    std::vector<unsigned long> sides;
    for (const int side : PartsOf(platform_.shape, 'x')) sides.push_back(static_cast<unsigned long>(side));
    s4u::create_torus_zone("torus", root, sides, Places(), rate(), latency(), s4u::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
  }
  void Dragonfly(s4u::NetZone* root) {
    const std::vector<int> shape = PartsOf(platform_.shape, 'x');
    const auto part = [&](std::size_t i) { return static_cast<unsigned>(shape[i]); };
    s4u::create_dragonfly_zone("dragonfly", root, {{part(0), 1}, {part(1), 1}, {part(2), 1}, part(3)}, Places(), rate(),
                               latency(), s4u::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
  }
  // Stars, each with a trunk to a middle that is never the bottleneck.
  void Regions(s4u::NetZone* root) {
    const int regions = PartsOf(platform_.shape, 'x')[0];
    for (int region = 0; region < regions; ++region) {
      const int first = platform_.nodes * region / regions, last = platform_.nodes * (region + 1) / regions;
      const std::string name = Str("region", region);
      s4u::NetZone* const zone = Star(root, name, last - first);
      NetPoint* const gate = zone->create_router(name + "-gate");
      zone->add_route(gate, nullptr, nullptr, nullptr, {}, true);
      zone->seal();
      s4u::SplitDuplexLink* const trunk =
          root->create_split_duplex_link(name + "-trunk", platform_.trunk_gbit * 1e9 / 8 * platform_.share);
      trunk->set_latency(platform_.trunk_ms * 1e-3 / 2)->seal();
      root->add_route(zone->get_netpoint(), nullptr, gate, nullptr, {{trunk, s4u::LinkInRoute::Direction::UP}}, true);
    }
  }

  const Platform& platform_;
  std::vector<s4u::Host*> hosts_;
};

class SimGridFlows final : public Flows {
 public:
  explicit SimGridFlows(const Platform& platform)
      : platform_(platform), hosts_(Map(platform).hosts()), maestro_([this] { Serve(); }) {
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) { OnDone(activity); });
  }
  ~SimGridFlows() override {
    closing_ = true;
    while (!maestro_.ended()) maestro_.Enter();
  }

  void Restart() override {
    CHECK(flows_.empty() && held_back_ == 0);
    origin_ = s4u::Engine::get_clock();
    for (Carrier& link : links_) link.bytes = 0;
  }

  Duration Advance(Duration until) override {
    if (until <= Now()) return until;
    if (flows_.empty() && held_back_ == 0 && until == Duration::max()) return until;
    Timer* alarm = nullptr;
    rang_ = false;
    if (until < Duration::max())
      alarm = Timer::set(origin_ + base::Seconds(until), [this, &alarm] {
        alarm = nullptr;
        rang_ = true;
        maestro_.Leave();
      });
    maestro_.Enter();
    if (alarm != nullptr) alarm->remove();
    return rang_ ? until : std::min(Now(), until);
  }

  void Start(int from, int to, double bytes, std::function<void()> left) override {
    s4u::Host* const source = hosts_[static_cast<std::size_t>(from)];
    s4u::Host* const target = hosts_[static_cast<std::size_t>(to)];
    const Route& route = RouteOf(from, to);
    for (const std::size_t link : route.links) links_[link].bytes += bytes;
    const s4u::CommPtr flow = s4u::Comm::sendto_init(source, target);
    flow->set_payload_size(static_cast<std::uint64_t>(std::max(bytes, 1.0)));
    // SimGrid knows no rate of what is sent by no actor: what is over sooner than a window allows is held back.
    const double least = platform_.window_mb > 0 ? 2 * route.latency * bytes / (platform_.window_mb * 1e6) : 0;
    flows_.emplace(flow.get(), Flow{flow, std::move(left), s4u::Engine::get_clock() + least});
    flow->vetoable_start();
  }

  Duration Latency(int from, int to) override {
    return Duration(static_cast<Duration::rep>(std::llround(RouteOf(from, to).latency * 1e9)));
  }

  std::vector<Link> Carried() const override {
    std::vector<Link> carried;
    for (const Carrier& link : links_)
      if (link.bytes > 0) carried.push_back({link.link->get_name(), link.bytes, link.link->get_bandwidth()});
    return carried;
  }

 private:
  struct Flow {
    s4u::CommPtr comm;
    std::function<void()> left;
    double earliest = 0;  // when that may be called
  };
  struct Route {
    std::vector<std::size_t> links;  // places in links_
    double latency = 0;
  };
  struct Carrier {
    const s4u::Link* link = nullptr;
    double bytes = 0;
  };

  Duration Now() const {
    return Duration(static_cast<Duration::rep>(std::llround((s4u::Engine::get_clock() - origin_) * 1e9)));
  }

  // SimGrid's own loop, which is left whenever something has happened.
  void Serve() {
    while (!closing_) {
      s4u::Engine::get_instance()->run();
      if (!closing_) maestro_.Leave();  // it has nothing to do
    }
  }

  void OnDone(const s4u::Activity& activity) {
    const auto found = flows_.find(&activity);
    if (found == flows_.end()) return;
    std::function<void()> left = std::move(found->second.left);
    const double earliest = found->second.earliest;
    done_ = std::move(found->second.comm);  // SimGrid is still busy with it, and no longer with the one before
    flows_.erase(found);
    if (closing_) return;
    if (earliest > s4u::Engine::get_clock()) {
      ++held_back_;
      Timer::set(earliest, [this, late = std::move(left)] {
        --held_back_;
        if (!closing_) Leave(late);
      });
      return;
    }
    Leave(left);
  }
  void Leave(const std::function<void()>& left) {
    left();
    maestro_.Leave();
  }

  const Route& RouteOf(int from, int to) {
    const std::uint64_t key = static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to);
    const auto [found, is_new] = routes_.try_emplace(key);
    if (!is_new) return found->second;
    std::vector<s4u::Link*> way;
    hosts_[static_cast<std::size_t>(from)]->route_to(hosts_[static_cast<std::size_t>(to)], way, nullptr);
    for (const s4u::Link* link : way) {
      const auto [place, unknown] = places_.try_emplace(link, links_.size());
      if (unknown) links_.push_back({link});
      found->second.links.push_back(place->second);
      found->second.latency += link->get_latency();
    }
    return found->second;
  }

  const Platform platform_;
  const std::vector<s4u::Host*> hosts_;
  base::Fiber maestro_;
  bool closing_ = false, rang_ = false;
  int held_back_ = 0;  // flows
  double origin_ = 0;  // SimGrid's time when this simulation began
  std::unordered_map<const s4u::Activity*, Flow> flows_;
  s4u::CommPtr done_;  // the last
  std::unordered_map<std::uint64_t, Route> routes_;
  std::unordered_map<const s4u::Link*, std::size_t> places_;
  std::vector<Carrier> links_;
};

}  // namespace

Result<std::unique_ptr<Flows>> MakeSimGridFlows(const Platform& platform) {
  static std::optional<std::string> made;
  if (made) return Error{Code::kInvalid, Str("SimGrid has one platform in a process, and had ", *made)};
  made = platform.name;
  try {  // SimGrid's own errors end here
    // What a flow takes is what is left of the links alone: latency is added by who sends, once for what follows itself.
    std::vector<std::string> arguments = {"freshet-sim",
                                          "--cfg=network/model:CM02",
                                          "--cfg=network/latency-factor:0",
                                          "--cfg=network/bandwidth-factor:1",
                                          "--cfg=network/weight-S:0",
                                          "--cfg=network/TCP-gamma:0",
                                          "--cfg=network/crosstraffic:0",
                                          "--cfg=surf/precision:1e-9",
                                          "--log=root.thres:error"};
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    int argc = static_cast<int>(argv.size());
    argv.push_back(nullptr);
    struct sigaction interrupt {};  // which SimGrid would take for itself
    sigaction(SIGINT, nullptr, &interrupt);
    new s4u::Engine(&argc, argv.data());  // the process's own, to its end
    sigaction(SIGINT, &interrupt, nullptr);
    return std::unique_ptr<Flows>(std::make_unique<SimGridFlows>(platform));
  } catch (const std::exception& problem) {
    return Error{Code::kInvalid, Str("platform ", platform.name, ": SimGrid refuses it: ", problem.what())};
  }
}

}  // namespace freshet::fabric::sim
