#include "fabric/sim/platform.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/settings.h"
#include "base/str.h"
#include "fabric/sim/known_platforms.h"

namespace freshet::fabric::sim {
namespace {

constexpr int kMostNodes = 1'000'000;
constexpr double kLeast = 1e-6, kMost = 1e9;  // of anything per second

void Register(Platform& platform, base::Settings& settings) {
  const base::Settings::Traits speed{.least = kLeast, .most = kMost}, time{.least = 0, .most = kMost};
  settings.Add("about", &platform.about, "what it is");
  settings.Add("nodes", &platform.nodes, "nodes there are", {.least = 1, .most = kMostNodes});
  settings.Add("cores", &platform.cores, "of a node", {.least = 1, .most = 4096});
  settings.Add("core-gflops", &platform.core_gflops, "of a core, at best", speed);
  settings.Add("memory-gb-s", &platform.memory_gb_s, "of a node", speed);
  settings.Add("efficiency", &platform.efficiency, "rows=share of the best");
  settings.Add("disk-mb-s", &platform.disk_mb_s, "of a node", speed);
  settings.Add("shared-disk-gb-s", &platform.shared_disk_gb_s, "of all nodes together; 0: none", time);
  settings.Add("topology", &platform.topology, "what joins the nodes",
               {.choices = {"star", "fat-tree", "torus", "dragonfly", "regions"}});
  settings.Add("shape", &platform.shape, "of that");
  settings.Add("link-gbit", &platform.link_gbit, "of a link", speed);
  settings.Add("link-us", &platform.link_us, "latency of a link", time);
  settings.Add("trunk-gbit", &platform.trunk_gbit, "between regions", speed);
  settings.Add("trunk-ms", &platform.trunk_ms, "latency between regions", time);
  settings.Add("window-mb", &platform.window_mb, "under way of a connection; 0: any", time);
  settings.Add("share", &platform.share, "of a link's speed that is left for what is sent", {.least = 0.01, .most = 1});
  settings.Add("local-gb-s", &platform.local_gb_s, "between workers of a node", speed);
  settings.Add("local-us", &platform.local_us, "latency between workers of a node", time);
  settings.Add("message-us", &platform.message_us, "a message costs who takes it", time);
  settings.Add("crowded-us", &platform.crowded_us, "more than that, where workers outnumber cores", time);
  settings.Add("copy-gb-s", &platform.copy_gb_s, "a core copies", speed);
  settings.Add("add-gb-s", &platform.add_gb_s, "a core adds to what is there", speed);
  settings.Add("short-gb-s", &platform.short_gb_s, "a core copies or adds of short messages; 0: as of others", time);
  settings.Add("codec-gb-s", &platform.codec_gb_s, "a core encodes or decodes", speed);
}

struct Reached {
  double rows = 0, share = 0;
};

std::optional<double> NumberOf(std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

Result<std::vector<Reached>> Curve(const std::vector<std::string>& texts) {
  std::vector<Reached> curve;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const auto rows = NumberOf(std::string_view(text).substr(0, equals));
    const auto share = equals == std::string::npos ? std::nullopt : NumberOf(std::string_view(text).substr(equals + 1));
    if (!rows || !share || *rows < 1 || !(*share > 0) || *share > 1 || (!curve.empty() && *rows <= curve.back().rows))
      return Error{Code::kInvalid, Str("efficiency ", Quoted(text),
                                       ": expected rows=share, rows ascending from 1 and a "
                                       "share of more than 0 and at most 1, like 32=0.6")};
    curve.push_back({*rows, *share});
  }
  if (curve.empty()) return Error{Code::kInvalid, "efficiency: expected one rows=share or more, like 32=0.6"};
  return curve;
}

}  // namespace

std::vector<int> PartsOf(std::string_view shape, char between) {
  std::vector<int> parts;
  while (true) {
    const std::size_t end = std::min(shape.find(between), shape.size());
    const auto part = NumberOf(shape.substr(0, end));
    if (!part || *part < 1 || *part > kMostNodes || *part != std::floor(*part)) return {};
    parts.push_back(static_cast<int>(*part));
    if (end == shape.size()) return parts;
    shape.remove_prefix(end + 1);
  }
}

Result<void> Platform::Validate() const {
  std::vector<std::string> wrong;
  Platform copy = *this;
  base::Settings settings;
  Register(copy, settings);
  if (auto in_range = settings.Check(); !in_range.ok()) wrong.push_back(in_range.error().text);
  if (auto curve = Curve(efficiency); !curve.ok()) wrong.push_back(curve.error().text);
  const auto expect = [&](bool fits, std::string_view like) {
    if (!fits) wrong.push_back(Str("shape ", Quoted(shape), " of a ", topology, ": expected ", like));
  };
  const auto room = [](const std::vector<int>& parts) {
    double product = 1;
    for (const int part : parts) product *= part;
    return product;
  };
  if (topology == "star") expect(shape.empty(), "none");
  if (topology == "fat-tree")
    expect(PartsOf(shape, ':').size() == 2, "nodes of a leaf switch and its links up, like 18:18");
  if (topology == "torus" || topology == "dragonfly") {
    const std::vector<int> parts = PartsOf(shape, 'x');
    expect(
        topology == "torus" ? !parts.empty() : parts.size() == 4,
        topology == "torus" ? "its sides, like 4x4x8" : "groups, chassis, routers and nodes of a router, like 4x2x4x2");
    if (topology == "dragonfly" && parts.size() == 4 && parts[0] > parts[2])
      wrong.push_back(Str("shape ", shape,
                          " of a dragonfly: a router has a link to one other group, so that there are at "
                          "most as many groups as routers of a chassis"));
    if (!parts.empty() && room(parts) < nodes)
      wrong.push_back(Str("shape ", shape, " of a ", topology, " has room for ", room(parts), " nodes, nodes are ",
                          nodes, ": there is no way to the others"));
  }
  if (topology == "regions") {
    const std::vector<int> parts = PartsOf(shape, 'x');
    expect(parts.size() == 1 && parts[0] <= nodes, "their number, like 3, and a node in each");
  }
  for (std::string& line : wrong) line = Str("platform ", name, ": ", line);
  if (!wrong.empty()) return Error{Code::kInvalid, Join(wrong, "\n")};
  return {};
}

Result<Platform> Platform::Read(std::string_view text, const std::string& name) {
  Platform platform;
  base::Settings settings;
  Register(platform, settings);
  TRY(settings.ParseToml(text, name));
  const std::size_t slash = name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1;
  platform.name =
      name.substr(slash, name.rfind(".toml") == std::string::npos ? name.npos : name.rfind(".toml") - slash);
  TRY(platform.Validate());
  return platform;
}

std::vector<std::string> Platform::KnownNames() {
  std::vector<std::string> names;
  for (const KnownPlatform& known : kKnownPlatforms) names.emplace_back(known.name);
  return names;
}

Result<Platform> Platform::Known(std::string_view name) {
  for (const KnownPlatform& known : kKnownPlatforms)
    if (known.name == name) return Read(known.toml, std::string(name));
  return Error{Code::kInvalid, Str("platform ", Quoted(name), ": expected ", Join(KnownNames(), ", "),
                                   ", or a file that ends in .toml")};
}

std::string Platform::ToToml() const {
  Platform copy = *this;
  base::Settings settings;
  Register(copy, settings);
  return settings.Effective();
}

double Platform::EfficiencyAt(double rows) const {
  const std::vector<Reached> curve = Curve(efficiency).value();
  if (rows <= curve.front().rows) return curve.front().share;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    if (rows > curve[i].rows) continue;
    const Reached &a = curve[i - 1], &b = curve[i];
    return a.share + (b.share - a.share) * std::log(rows / a.rows) / std::log(b.rows / a.rows);
  }
  return curve.back().share;
}

}  // namespace freshet::fabric::sim
