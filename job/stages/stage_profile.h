/* Stage profile: the layers of a model from a file of the user's: our JSON (job/spec/job_split.h), a network
 * of operators with shapes, or ONNX. What follows from shapes alone is an estimate: multiply-adds, 16 bytes a
 * parameter (weight, gradient, two moments of Adam, single precision) and 4 an activation. In memory only. */
#pragma once

#include "job/spec/job.h"

#define STAGE_PROFILE_MAX_BYTES ((size_t) 64 << 20)

/* stage_profile_decode() - *ret is released with job_split_profile_free(); empty unless 0 is returned
 * Return: 0; -EBADMSG, -EINVAL, -ENOTSUP and *err, what is wrong where; -ENOMEM. */
int stage_profile_decode(const char *bytes, size_t size_bytes, struct job_split_profile *ret,
                         struct err *err);

/* stage_profile_trainer() - of the reference trainer's mlp, cnn and resnet on images of one channel in ten
 * classes, 28 x 28 unless the job's preprocessing resizes them: what IDX files hold as a rule. A trainer on
 * other data measures itself (`remuda run`), or is given a profile. Return: false for other models, programs
 * and formats, or without memory. */
bool stage_profile_trainer(const struct job *job, struct job_split_profile *ret);

/* stage_profile_bare() - of a job whose stages bind every layer, one to each of its ranks: so many layers, of
 * which nothing else is known; that the last stage ends the model is taken on trust. Return: false where a
 * layer between them or a rank is left over, or without memory. */
bool stage_profile_bare(const struct job_split_stage *stages, size_t count, size_t ranks,
                        struct job_split_profile *ret);

/* stage_profile_of() - what is known of a job's layers without measuring: its profile, else the trainer's
 * models, else its stages. @own: what is not the job's; released with job_split_profile_free()
 * Return: NULL = nothing. */
const struct job_split_profile *stage_profile_of(const struct job *job, size_t ranks,
                                                 struct job_split_profile *own);
