// Going back to an earlier version, and finding the observations that are to leave the history with that.

#include <unordered_set>

#include "deploy/control_records.h"
#include "deploy/deployment.h"

namespace freshet::deploy {
namespace {

// A record has room for so many stretches, and then some.
constexpr std::size_t kMostStretches = 1'000'000;

struct Found {
  Ranges sequences;
  std::uint64_t observations = 0;
};

// The observations of those times and ids. Records between two of them that are no observations join the stretch.
Result<Found> Find(const RecordLog& log, const Discard& discard) {
  const std::unordered_set<std::string_view> ids(discard.ids.begin(), discard.ids.end());
  Found found;
  std::uint64_t begun = 0, last = 0;  // the present stretch; 0: none
  const auto end_stretch = [&] {
    if (begun > 0) found.sequences.Add(begun, last);
    begun = 0;
  };
  Slip slip;
  TRY(log.Scan(1, [&](const Record& record) -> Result<void> {
    if (record.kind != RecordKind::kObservation) return {};
    PeekSlip(record.payload, slip);
    const bool in_time = discard.times && slip.time >= discard.times->first && slip.time <= discard.times->second;
    if (!in_time && !ids.contains(slip.id)) {
      end_stretch();
      return {};
    }
    ++found.observations;
    if (begun == 0) begun = record.sequence;
    last = record.sequence;
    if (found.sequences.list().size() < kMostStretches) return {};
    return Error{Code::kInvalid, Str("discard: what is named lies in more than ", kMostStretches,
                                     " stretches of the journal; name fewer at a time")};
  }));
  end_stretch();
  if (found.observations == 0)
    return Error{Code::kNotFound, "discard: nothing in the journal was observed at these times or under these ids"};
  return found;
}

}  // namespace

void Deployment::PostRollBack(std::uint64_t version, Discard discard, bool relearn, Done done) {
  if (!discard.times && discard.ids.empty())
    return inbox_.Post([this, version, sequences = std::move(discard.sequences), relearn, done = std::move(done)] {
      RollBackTo(version, sequences, relearn, done);
    });
  // The whole journal is read: not by the writer, for whom others wait.
  background_.Post([this, version, discard = std::move(discard), relearn, done = std::move(done)]() mutable {
    auto found = Find(*log_, discard);
    if (!found.ok()) return done(found.error());
    discard.sequences.Add(found.value().sequences);
    inbox_.Post([this, version, sequences = std::move(discard.sequences), relearn, done = std::move(done),
                 observations = found.value().observations] {
      RollBackTo(version, sequences, relearn, [&](Result<std::string> result) {
        if (!result.ok()) return done(std::move(result));
        Json json = Json::parse(result.value());
        json["discarded"] = observations;
        done(json.dump());
      });
    });
  });
}

void Deployment::RollBackTo(std::uint64_t version, const Ranges& discard, bool relearn, const Done& done) {
  if (versions_ == nullptr || !versions_->Find(version))
    return done(Error{Code::kNotFound, Str("version ", version, " is not kept; GET …/versions lists those that are")});
  if (!discard.empty() && discard.list().back().second >= log_->next_sequence())
    return done(Error{Code::kInvalid, Str("discard ", discard.list().back().first, " to ", discard.list().back().second,
                                          ": expected sequences in order, up to ", log_->next_sequence() - 1)});
  // All that can go wrong does so before there is a record, which every restart would have to follow.
  auto earlier = RolledBack(version, discard, relearn, log_->next_sequence());
  if (!earlier.ok()) return done(earlier.error());
  Json json = {{"version", version}, {"relearn", relearn}};
  if (!discard.empty()) json["discards"] = discard.list();
  versions_->Hold(version, log_->next_sequence());
  auto logged = Log(RecordKind::kRollBack, json.dump());
  if (!logged.ok()) return done(logged.error());
  if (auto applied = RollBack(std::move(earlier).value(), discard); !applied.ok()) {
    Problem(applied.error());
    return done(applied.error());
  }
  StartVersion("roll-back");
  done(Json({{"version", Str(version)}, {"sequence", logged.value()}}).dump());
}

}  // namespace freshet::deploy
