#pragma once

namespace freshet::model {

// Makes the teams of OpenMP's threads in this process wait shortly for work, unless the user has said how they are to
// wait (GOMP_SPINCOUNT, OMP_WAIT_POLICY). OpenMP reads that when it is loaded, before anything of ours runs, and never
// again: so the program starts once more, in the same process, with the same arguments. That takes as long as starting
// does (5 ms). For programs alone, as the first thing they do: a library must not start its user's program anew.
void WaitShortly(char** arguments);

}  // namespace freshet::model
