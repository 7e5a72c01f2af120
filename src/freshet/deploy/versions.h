#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/mutex.h"
#include "data/description.h"
#include "deploy/state.h"

namespace freshet::deploy {

// A kept version of a model: a file that `predict` can use as it is, with what is needed to go on learning added.
struct VersionInfo {
  std::uint64_t id = 0;       // the sequence of the record that began it
  std::string origin;         // start, updates, iteration, retraining
  std::uint64_t applied = 0;  // every observation before this sequence has been learned
  std::uint64_t learned = 0;  // observations that it has learned
  double error = 0;           // recent prequential error when it was made
  std::int64_t made = 0;      // seconds since 1970
  bool pinned = false;
  std::string ToJson() const;
};

// The versions of one deployment, in a directory. A version counts once its vitals (all else a deployment remembers:
// see Deployment) stand beside it; one without is what a crash left.
//
// Threads: any, but Save and SaveVitals of one version by one at a time.
class Versions {
 public:
  // kInvalid when a newer program wrote one of them; those that are damaged are not offered.
  static Result<std::unique_ptr<Versions>> Open(const base::Env& env, std::string directory);

  Result<void> Save(const VersionInfo& info, const model::Model& model, const State& state,
                    const data::Description& description);
  Result<void> SaveVitals(const VersionInfo& info, const std::string& json);
  // Removes what a crash left without vitals, once no record can name it any more.
  Result<void> RemoveIncomplete();

  // Complete versions, oldest first.
  std::vector<VersionInfo> list() const;
  std::optional<VersionInfo> Find(std::uint64_t id) const;
  // Weights and all into `state` (which must be new), with the description as it was. kCorrupt (also when the file
  // holds another version than its name says), kNotFound; kInvalid when it is a version of another model, or of a newer
  // format.
  Result<data::Description> Load(std::uint64_t id, const model::Model& model, State& state) const;
  Result<std::string> LoadVitals(std::uint64_t id) const;
  // What model it is a version of.
  Result<model::ModelConfig> ConfigOf(std::uint64_t id) const;
  std::string PathOf(std::uint64_t id) const;

  void Pin(std::uint64_t id, bool pinned);
  // Of the versions before `end` these are pinned and no others.
  void PinOnly(const std::vector<std::uint64_t>& ids, std::uint64_t end);
  // A replay of the record `by` needs this version: it is not pruned until a version after that record is complete.
  void Hold(std::uint64_t id, std::uint64_t by);
  // The first record that a replay may need when it begins at `applied`: versions that are held may be relearned from.
  std::uint64_t NeededFrom(std::uint64_t applied) const;
  // A version that proved damaged is named in the log, counted, and not offered again.
  void Forget(std::uint64_t id, const Error& why);
  std::uint64_t damaged() const { return damaged_.load(std::memory_order_relaxed); }
  // Thins out those that are not pinned or held until `keep` are left, the older the more; the newest always is.
  Result<void> Prune(std::size_t keep);

 private:
  Versions(const base::Env& env, std::string directory) : env_(env), directory_(std::move(directory)) {}
  std::string VitalsPathOf(std::uint64_t id) const { return PathOf(id) + ".vitals"; }
  void Damaged(const std::string& path, const Error& why);
  void Complete(const VersionInfo& info);

  const base::Env env_;
  const std::string directory_;
  std::atomic<std::uint64_t> damaged_{0};
  mutable base::Mutex mutex_;
  std::map<std::uint64_t, VersionInfo> complete_ GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::uint64_t> held_ GUARDED_BY(mutex_);  // by the record that needs it
};

// The update rule whose sums the newest version in a directory holds; nothing when there is no version to read.
std::optional<std::string> OptimizerKept(base::Files& files, const std::string& directory);

}  // namespace freshet::deploy
