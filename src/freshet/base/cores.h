#pragma once

#include <string>

namespace freshet::base {

// How many cores there are to use. A machine's own number is only the beginning: a process may be tied to some of them,
// and a container may get less time than its cores have (a quota of its control group or of one above it, version 1 or
// 2). A quota of 1.5 cores counts as 2: two threads then compute 1.5 times as much as one, though they rest a quarter
// of the time.
//
// Read anew in every call. Threads: any. What cannot be read limits nothing. `root` is where /proc and /sys are found;
// tests have one of their own.

// Those that the calling thread may use: by affinity and quota, at least 1.
int AvailableCores(const std::string& root = "");

// Those that all processes of this host share, wherever each of them is tied to: by quota alone, at least 1.
int HostCores(const std::string& root = "");

// The least quota of the control groups this process is in, in cores; infinity when there is none.
double QuotaCores(const std::string& root = "");

}  // namespace freshet::base
