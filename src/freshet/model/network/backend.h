#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "model/network/kernel.h"

namespace freshet::model::network {

// A borrowed work(first, last): small networks call it often, and a std::function would allocate each time.
class RangeWork {
 public:
  template <class Work>
  RangeWork(const Work& work)  // NOLINT: implicit on purpose
      : work_(&work),
        call_([](const void* w, std::size_t first, std::size_t last) { (*static_cast<const Work*>(w))(first, last); }) {
  }
  void operator()(std::size_t first, std::size_t last) const { call_(work_, first, last); }

 private:
  const void* work_;
  void (*call_)(const void* work, std::size_t first, std::size_t last);
};

// What computes the layers of networks: a library, and the threads or the device by which it does. Everything else
// about a network is written against this header and kernel.h alone; a program is told in its options whose kernels it
// runs. A back-end is one folder, as onednn/.
//
// Has no state of its own: what kernels of one program share is their Context. Threads: any, at once.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  virtual std::shared_ptr<Context> MakeContext() const = 0;
  virtual Layout PlainLayout(std::size_t rows, const Shape& shape) const = 0;
  // Can this layer take that activation into its own kernel?
  virtual bool CanFuse(const Layer& layer, const Layer& activation) const = 0;
  // kInvalid when there is no way to compute this.
  virtual Result<std::unique_ptr<Kernel>> MakeKernel(const KernelSpec& spec) const = 0;
  // Copies a tensor into the plain layout; an input gradient goes the other way.
  virtual Result<std::unique_ptr<Kernel>> MakePlain(const KernelSpec& spec) const = 0;

  // Sets how many threads kernels made and run by this thread use, and returns how many it was. Use a ThreadScope.
  virtual int UseThreads(int threads) const = 0;
  // Calls work(first, last) for parts of 0 … count-1, by all threads of the scope when there is enough to do.
  virtual void InParallel(std::size_t count, std::size_t cost_each, RangeWork work) const = 0;
  // to += from, by all threads of the scope.
  virtual void AddInto(float* to, const float* from, std::size_t count) const = 0;
};

// oneDNN and teams of OpenMP's threads: what computes where nothing else is said.
const Backend& OneDnn();

// Sets how many threads kernels made and run by this thread use, for as long as it lives.
class ThreadScope {
 public:
  ThreadScope(const Backend& backend, int threads) : backend_(backend), before_(backend.UseThreads(threads)) {}
  ~ThreadScope() { backend_.UseThreads(before_); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  const Backend& backend_;
  const int before_;
};

}  // namespace freshet::model::network
