#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/others.h"
#include "fabric/fabric.h"

namespace freshet::train {

// The processes that train one model, as one of them knows them before training begins: what they ask each other.
//
// Threads: one. Blocking and failure as data::Others says.
class Members final : public data::Others {
 public:
  explicit Members(std::unique_ptr<fabric::Fabric> fabric) : fabric_(std::move(fabric)) {}

  fabric::Fabric& fabric() const { return *fabric_; }

  Result<std::vector<std::string>> Tell(std::string_view about, const std::string& mine) override;
  std::string Name(std::size_t rank) const override;  // "rank 1 (alpha)"
  Error Refuse(std::string why) override;

  // Training begins: from here on all stop together, and who is gone is lost.
  void Begin() { began_ = true; }
  bool began() const { return began_; }
  // They go on by other means.
  std::unique_ptr<fabric::Fabric> TakeFabric() { return std::move(fabric_); }
  // All have done what they came for: nothing is asked or told any more.
  void Part() { fabric_ = nullptr; }
  // This process gives up. The others are told why, unless they have come to the same end by themselves: refused
  // together, or agreed to stop, in which case some may still be keeping what there is.
  void Leave(const Error& why);

 private:
  std::unique_ptr<fabric::Fabric> fabric_;
  bool refused_ = false, began_ = false;
};

}  // namespace freshet::train
