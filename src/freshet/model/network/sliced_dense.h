#pragma once

#include "model/network/backend.h"
#include "model/network/slicing.h"

namespace freshet::model::network {

// A fully connected layer of whose weights this worker has a slice (KernelSpec::slicing says which): the product of that
// with the rows of all workers is the back-end's business, what goes to and fro before and after is done here, by
// Call::meeting. All workers call it together.
//
// Cut by outputs, a worker is brought all rows as they enter, and gives everybody its outputs of their rows. Cut by
// inputs, it is brought its inputs of all rows, and what comes of these for every output goes to whose row it is, who adds
// it up in the order of workers. Gradients go the same ways back.
Result<std::unique_ptr<Kernel>> MakeSlicedDense(const Backend& backend, const KernelSpec& spec);

}  // namespace freshet::model::network
