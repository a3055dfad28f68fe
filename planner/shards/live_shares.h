/* Live shares: what a running job is told of its batch's cut, one JSON object in the file that REMUDA_SHARES
 * names, replaced by rename:
 *
 *         {"step":120,"shares":[700,324]}       from step 120 on rank 0 takes 700 of 1024 samples, rank 1 324
 *
 * Written by launchers, read by training programs: in C (trainer/in_step/recut.h) and in Python
 * (python/remuda/torch/agreement.py), by one rule.
 *
 * The newest file counts, whatever its step: from that step on, or from the first one that no rank has begun
 * where that is later. What earlier files said of steps from there on is forgotten, also where it was yet to
 * come. Which file is the newest only its reader knows: it is the lowest rank that was given the variable,
 * and it tells all, so that a rank that reads late splits no world.
 *
 *         step 10: {"step":100,"shares":[900,124]}    announced
 *         step 20: {"step":60,"shares":[700,324]}     from 60 on; 900 and 124 never are
 *         step 90: {"step":0,"shares":[512,512]}      from about 92 on
 *
 * Pure but for the heap. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

#define LIVE_SHARES_RANKS_MAX 4096
#define LIVE_SHARES_BATCH_MAX (1 << 24)
#define LIVE_SHARES_BYTES_MAX (1 << 17)

struct live_shares {
        uint64_t step;
        size_t count;
        uint32_t *of; /* samples of each rank's part of a batch; owned */
};

/* live_shares_encode() - with a newline; `to` fails without memory. */
void live_shares_encode(const struct live_shares *s, struct text *to);

/* live_shares_decode() - Return: 0, or -EBADMSG naming the field; `ret` is then empty. */
int live_shares_decode(const char *bytes, size_t size_bytes, struct live_shares *ret, struct err *err);

/* live_shares_check() - are these shares of such a world? Return: 0, or -EINVAL: another number of ranks,
 * another sum than the batch. */
int live_shares_check(const struct live_shares *s, size_t ranks, uint64_t batch, struct err *err);

void live_shares_free(struct live_shares *s);
