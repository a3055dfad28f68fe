/* Fusion: which operators of a graph one pass does, by a table of rules.
 *
 * A rule is a pattern of operators that follow each other, and the operator that does them in one pass. It
 * holds at a node whose value the pattern's next operator reads, and so on to the pattern's end, where
 * nobody else reads a value that the pass would not leave behind: in
 *
 *         matmul -> bias -> ramp -> ...          matmul, bias, ramp become one; in
 *                     `---> softmax -> ...       two read the bias, and only matmul and bias do:
 *                                                what comes out of them is there to be read by both.
 *
 * Of the rules that hold the longest counts. The trainer's own are the first rows of a table; a file brings
 * more (trainer/operators/fusion_file.h). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/operators/kernels.h"
#include "trainer/operators/op.h"

#define FUSION_RULES_MAX  32
#define FUSION_NODES_MAX  64
#define FUSION_INPUTS_MAX 2
#define FUSION_NAME_BYTES 64

struct fusion_rule {
        char name[FUSION_NAME_BYTES]; /* of the fused operator */
        size_t part_count;
        enum op parts[OP_PARTS_MAX]; /* the pattern: operators that are not fused */
        enum op fused;               /* OP_OWN: `own` does it */
        struct kernels_fused own;
};

struct fusion_table {
        size_t count;
        struct fusion_rule rules[FUSION_RULES_MAX];
};

/* Each node comes after those that it reads; what reads none reads the samples. */
struct fusion_graph {
        size_t count;
        struct {
                enum op op;
                size_t input_count, inputs[FUSION_INPUTS_MAX];
        } nodes[FUSION_NODES_MAX];
};

struct fusion_match {
        const struct fusion_rule *rule; /* NULL: the node stays by itself */
        size_t members[OP_PARTS_MAX];   /* of the rule's pattern, the node first */
        const struct fusion_rule
                *refused;      /* a longer rule that would hold if nobody else read a value, or NULL */
        size_t read_elsewhere; /* the node whose value that is */
};

/* fusion_built_in() - the trainer's own rules. @bypass: OP_BIT()s of the fused operators that are left out */
struct fusion_table fusion_built_in(uint32_t bypass);

/* fusion_put() - a rule in the place of one with the same pattern, or as a new one.
 * Return: false: the table is full. */
bool fusion_put(struct fusion_table *t, const struct fusion_rule *rule);

/* fusion_drop() - no rule with this pattern. Return: was there one? */
bool fusion_drop(struct fusion_table *t, const enum op *parts, size_t count);

/* fusion_match() - what begins with this node. O(rules * nodes). */
struct fusion_match fusion_match(const struct fusion_graph *g, const struct fusion_table *t, size_t node);
