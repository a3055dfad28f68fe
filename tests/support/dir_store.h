/* A store on a directory of its own, and everything it said, for the tests of what it reads and of what it
 * writes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "store/store.h"

struct dir_store {
        sd_event *loop;
        struct store *store;
        char path[64];
        json_t *objects;  /* "Pod default/a" -> the object as last delivered */
        json_t *troubles; /* sentences */
        unsigned deliveries, synced;
        int answers, result;
        char sentence[512];
};

#define DIR_STORE_POD_A                                                                                      \
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\","    \
        "\"uid\":\"u-a\"},\"spec\":{}}"
#define DIR_STORE_POD_B                                                                                      \
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\",\"uid\":\"u-b\"},\"spec\":{\"nodeName\":\"n9\"}}"

#define DIR_STORE_POD_C "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"c\",\"uid\":\"u-c\"}}"

/* dir_store_new() - the empty directory alone; dir_store_open() - the store on it, which has read what is
 * there; dir_store_close() - without the store again, as after a crash: what it delivered is forgotten. */
struct dir_store *dir_store_new(void);
void dir_store_open(struct dir_store *f);
void dir_store_close(struct dir_store *f);
void dir_store_free(struct dir_store *f);

/* dir_store_run_for() - the loop for so long; dir_store_settle() - longer than a change of a file takes to be
 * noticed. */
void dir_store_run_for(struct dir_store *f, uint64_t usec);
void dir_store_settle(struct dir_store *f);

/* Files of the directory: written whole, opened by `mode` of fopen(), taken away, read (free() it; "" when
 * there is none). */
void dir_store_write(struct dir_store *f, const char *name, const char *bytes);
void dir_store_write_bytes(struct dir_store *f, const char *name, const char *bytes, const char *mode);
void dir_store_remove(struct dir_store *f, const char *name);
char *dir_store_read(struct dir_store *f, const char *name);

/* What was delivered: "Pod default/a", "spec/nodeName" -> its text, "?" for no text, "" for nothing. */
const char *dir_store_field(struct dir_store *f, const char *object, const char *path);
bool dir_store_has(struct dir_store *f, const char *object);
/* dir_store_said() - is there a trouble with these words? */
bool dir_store_said(struct dir_store *f, const char *part);

/* dir_store_answer() - keeps an answer: give it, with the fixture, to what the store does. */
void dir_store_answer(void *userdata, int result, const char *sentence);
/* dir_store_bind() - binds a pod of namespace "default" and waits. Return: the answer. */
int dir_store_bind(struct dir_store *f, const char *name, const char *uid, const char *node);
