#pragma once

#include <mutex>

// What is guarded by which lock, in words that clang checks (make lint, and with every build of the fuzz targets) and other
// compilers skip.
//   GUARDED_BY(mutex_)   of a member: read and written only while mutex_ is held
//   REQUIRES(mutex_)     of a function: who calls it holds mutex_
//   EXCLUDES(mutex_)     of a function: who calls it does not, since it takes it
#ifdef __clang__
#define FRESHET_THREAD_ATTRIBUTE(what) __attribute__((what))
#else
#define FRESHET_THREAD_ATTRIBUTE(what)
#endif
#define GUARDED_BY(mutex) FRESHET_THREAD_ATTRIBUTE(guarded_by(mutex))
#define REQUIRES(...) FRESHET_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) FRESHET_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define RETURNS_MUTEX(mutex) FRESHET_THREAD_ATTRIBUTE(lock_returned(mutex))
// Of a function that the checker cannot follow; a comment says why it is right all the same.
#define UNCHECKED_LOCKS FRESHET_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace freshet::base {

// std::mutex, of which the compiler knows what it guards; a fiber (fibers.h) that waits for it lets others run. Mostly
// held by a Lock; a function that is called with it held may let go of it for a while.
class FRESHET_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() FRESHET_THREAD_ATTRIBUTE(acquire_capability()) {
    if (!mutex_.try_lock()) LockContended();
  }
  void unlock() FRESHET_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  std::mutex& underneath() { return mutex_; }  // for who waits with it

 private:
  void LockContended();
  std::mutex mutex_;
};

// Holds a mutex as long as it lives, but for the time between unlock and lock.
class FRESHET_THREAD_ATTRIBUTE(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) FRESHET_THREAD_ATTRIBUTE(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() FRESHET_THREAD_ATTRIBUTE(release_capability()) {
    if (held_) mutex_.unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() FRESHET_THREAD_ATTRIBUTE(acquire_capability()) {
    mutex_.lock();
    held_ = true;
  }
  void unlock() FRESHET_THREAD_ATTRIBUTE(release_capability()) {
    held_ = false;
    mutex_.unlock();
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

}  // namespace freshet::base
