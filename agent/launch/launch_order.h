/* Launch order: the body of POST /v1/launch: what it may say, and the process that comes of it. */
#pragma once

#include "agent/launch/launch_choice.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "job/spec/program_table.h"

struct launch_order {
        char runtime[16];
        char directory[1024];
        unsigned chips;
        struct text list; /* ids with commas; the caller frees it, also after an error */
        struct json_field args, environment;
};

/* launch_order_read() - strict: an unknown field is an error. Borrows from @root. Return: >= 0 or -EINVAL. */
int launch_order_read(const struct json_field *root, struct launch_order *ret, struct err *err);

/* launch_order_start() - start the program on the chosen devices as the caller. Return: 0; -EINVAL (an
 * environment that the table does not let through) or the errors of launches_start(). */
int launch_order_start(const struct launch_order *order, const struct caller *caller,
                       const struct program_table_row *program, const struct launch_choice *choice,
                       struct launches *launches, unsigned *ret_id, pid_t *ret_pid, struct err *err);
