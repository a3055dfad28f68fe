/* Err: what went wrong, for a human, beside the negative errno that code branches on.
 *
 * Lives on the caller's stack: never allocated, never freed, works when memory is gone. Pure. */
#pragma once

struct err {
        int code;      /* negative errno; 0 = no error */
        char msg[512]; /* one line, no trailing newline, truncated if longer */
};

/* err_set() - say what went wrong. `err` may be NULL when the caller wants the code alone.
 * @code: negative errno
 * Return: `code`, so that a failing call site is one line: return err_set(err, -EINVAL, ...). */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* err_wrap() - put a noun in front of the message that is already there: "file 'a.conf': ...".
 * Return: `code`. */
int err_wrap(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
