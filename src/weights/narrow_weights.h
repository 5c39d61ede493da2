#pragma once
#include "weights/checked_json.h"
#include "weights/checkpoint.h"
#include "weights/stored_tensor.h"

namespace regard {

// Weights of eight and four bits whose scales lie in tensors of their own (FP8: X.weight with X.weight_scale_inv or
// X.weight_scale; MXFP4: X_blocks with X_scales): replaced in `tensors` by f32 of the same values, or by DType::mxfp4,
// kept by `checkpoint`; their scales, and those of activations, which are not rounded here, are gone. `config`: the
// whole config.json. Errors: unsupported, naming the quant_method, for any other kind; bad_input as float8.h and
// mxfp4.h say.
void widen_narrow_weights(const JsonPlace& config, Checkpoint& checkpoint, StoredTensors& tensors);

}  // namespace regard
