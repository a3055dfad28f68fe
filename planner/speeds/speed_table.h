/* Speed table: the one SpeedTable object of a store: how long a step takes, by (program, job model, device).
 *
 *      apiVersion: remuda.dev/v1alpha1
 *      kind: SpeedTable
 *      metadata: {name: speeds}
 *      speeds:
 *        SHA256/mlp/Ascend910A: {alpha_ms: 1.2, beta_ms: 0.031, updated: 2026-11-21T10:00:00Z, fit: {...}}
 *
 * The one reader and the one writer of its text. A key is the hash of the program (or "-": not known), the
 * job's model and the device's model, '/' between them; what follows the second '/' is the device's, whatever
 * it holds. A device that several ranks share is another device: "MODEL (shared by 2)". Rows that make no
 * sense are passed over, not the table, and the table says so. In memory only. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"
#include "planner/speeds/speed_fit.h"

#define SPEED_TABLE_NAME         "speeds"
#define SPEED_TABLE_ROWS_MAX     2048 /* below 1 MiB with the longest names; etcd takes 1.5 */
#define SPEED_TABLE_KEPT_MAX     4096 /* of several tables in one */
#define SPEED_TABLE_MODEL_BYTES  64   /* of a job's model, and of a device's */
#define SPEED_TABLE_DEVICE_BYTES (SPEED_TABLE_MODEL_BYTES + 24)
#define SPEED_TABLE_KEY_BYTES    (SHA256_HEX_BYTES + SPEED_TABLE_MODEL_BYTES + SPEED_TABLE_DEVICE_BYTES + 2)

struct speed_table_row {
        char program[SHA256_HEX_BYTES];      /* "-" = not known */
        char model[SPEED_TABLE_MODEL_BYTES]; /* of the job */
        char device[SPEED_TABLE_DEVICE_BYTES];
        double alpha_ms, beta_ms;
        uint64_t updated_usec; /* CLOCK_REALTIME; 0 = not said */
        struct speed_fit fit;  /* weight 0 = the row was written by hand */
};

struct speed_table {
        struct speed_table_row *rows; /* the one updated last comes last */
        size_t count;
        char trouble[256]; /* what of it was passed over, a sentence; "" = nothing */
};

/* speed_table_decode() - @object: a SpeedTable, or NULL: an empty table. @ret released with
 * speed_table_free(). Return: 0; -EBADMSG (it is no SpeedTable); -ENOMEM. */
int speed_table_decode(const json_t *object, struct speed_table *ret, struct err *err);
void speed_table_free(struct speed_table *table);

/* speed_table_keep() - a new row, or what its key has from now on, as the one updated last; past
 * SPEED_TABLE_KEPT_MAX it is dropped. speed_table_add() - all rows of another table. Return: 0 or -ENOMEM. */
int speed_table_keep(struct speed_table *table, const struct speed_table_row *row);
int speed_table_add(struct speed_table *table, const struct speed_table *more);

/* speed_table_speeds() - where the rows of a SpeedTable are, `spec` or not; borrowed; NULL = it has none. */
json_t *speed_table_speeds(const json_t *object);

/* A program is known by its content and its arguments, so that two scripts of one interpreter are two
 * programs. speed_table_program() - that name: @content, a SHA-256, where there are no words; else a hash of
 * it and them. What the launcher puts in is no word: the options of the reference trainer. Arguments that
 * follow arguments: the name of the first with the second. @ret may be @content; "" of "". */
void speed_table_program(const char *content, char *const *words, size_t count, char ret[SHA256_HEX_BYTES]);

/* Programs that nobody vouches for are known by whose they are: "own:" and a hash of namespace, image,
 * command and arguments. speed_table_own() - that name. */
#define SPEED_TABLE_OWN "own:"
struct speed_table_words {
        char *const *list;
        size_t count;
};
void speed_table_own(const char *namespace_, const char *image, struct speed_table_words command,
                     struct speed_table_words arguments, char ret[SHA256_HEX_BYTES]);

/* speed_table_speaks_of() - how far a row of one program speaks of another: surely of itself and of any where
 * none is asked for (NULL or ""), perhaps where the row does not know its own ("" or "-"), else not at all. A
 * row of "own:..." speaks of itself alone: what one namespace says costs no other. Of those that speak
 * surely, else perhaps, the one updated last counts. */
enum speed_table_speaks { SPEED_TABLE_NOT, SPEED_TABLE_PERHAPS, SPEED_TABLE_SURELY };
enum speed_table_speaks speed_table_speaks_of(const char *row_program, const char *program);

/* speed_table_find() - @program: NULL or "" = any: the one updated last; with a hash, that one's row, else
 * one of a program that is not known. NULL = none. @device: as speed_table_device(). */
const struct speed_table_row *speed_table_find(const struct speed_table *table, const char *program,
                                               const char *model, const char *device);

/* speed_table_device() - the device's name in the table. @sharing: ranks on this one device, 0 and 1 = it is
 * alone.
 */
void speed_table_device(char device[SPEED_TABLE_DEVICE_BYTES], const char *model, size_t sharing);

/* An observation: steps of `batch` samples took `step_ms` (as speed_fit_add()). Borrowed. */
struct speed_table_observation {
        const char *program; /* NULL or "" = not known */
        const char *model, *device;
        double batch, step_ms, weight;
};

/* speed_table_refine() - the table with these observations in it, as an object to be written.
 * @object: the present one, or NULL. What it holds besides is kept. Beyond SPEED_TABLE_ROWS_MAX rows the ones
 * that were not touched longest go. Return: a new reference; NULL and *err (-ENOMEM, -EBADMSG: it is no
 * SpeedTable). */
json_t *speed_table_refine(const json_t *object, const struct speed_table_observation *observations,
                           size_t count, uint64_t now_usec, struct err *err);
