#pragma once

#include "data/description.h"
#include "data/rows.h"

namespace freshet::data {

// Rows as a model learns and predicts from them, in place.

// Standardises the numeric columns of a block, if the description says so, and shows what is to be seen of images.
void Standardise(const Description& description, Rows& rows);
// The same, but each row counts in the moments before they are applied to it.
void Standardise(Moments& moments, Rows& rows);
// The same by moments that stay as they are.
void ApplyMoments(const Moments& moments, Rows& rows);
// Labels as a model learns them (Target).
void ScaleLabels(const Description& description, Rows& rows);

}  // namespace freshet::data
