/* Store once: one question to a store, or one write, with a loop of its own, for programs without one.
 * Signals are left to the caller. */
#pragma once

#include "store/store.h"

#define STORE_ONCE_USEC ((uint64_t) 20000000)

struct store_once {
        sd_event *loop;
        struct store *store; /* to write to, between open and wait */
        int result;
        char sentence[256];
        char failure[200]; /* of what is tried again: said when the time is over; "" = none */
};

/* store_once_open() - a loop, and the store on it. 0 or what store_open() says; nothing is open then. */
int store_once_open(struct store_once *once, const struct store_options *options, struct err *err);

/* store_once_answered() - a store_answer, and the end of a question, too. @userdata: the struct store_once */
void store_once_answered(void *userdata, int result, const char *sentence);

/* store_once_wait() - until it is answered, for STORE_ONCE_USEC at most; all is closed then. Return: the
 * answer's result, its sentence in *err; -ETIMEDOUT; -EINTR. */
int store_once_wait(struct store_once *once, struct err *err);
