/* The stories of a training job in trouble: what is seen over time, and the verdict. test_world.c plays each
 * on one host, where every rank has a chip of its own, and on a cluster, where two device groups have two
 * ranks each, through what each of them makes of its reports and messages; the verdict is the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct test_stories_setting {
        uint64_t restarts, min, patience, hang, last_step; /* min 0 = all four */
        bool recut, silent, saved, stay, spare, no_checkpoints, stubborn;
};

struct test_stories_story {
        const char *sentence;
        struct test_stories_setting setting;
        const char *script, *verdicts;
};

/* What the script's words mean:
 *   run S         S seconds; every rank that is not mute makes a step of 100 ms every look
 *   wait S        S seconds without a word
 *   slow R F      rank R's steps take F times as long from now on
 *   paced S       S seconds, then one step of every rank
 *   mute R, mute all, talk R   it makes no steps; it says its last step again and again
 *   exit R CODE, end CODE      a rank ends; mpirun does
 *   good          all ranks and mpirun end with 0
 *   obey          all ranks end with 143, as asked
 *   stop R, cont R, stuck R    its process is stopped, goes on, is in the kernel
 *   sick R, gone R, left R, node R     the place of rank R is lost
 *   leave R       it is asked to end
 *   back R        the place that rank R had is there again
 *   halt          all places have ended what they ran (the stubborn ones do not by themselves)
 *   cancel N      signal N
 *   saved         a checkpoint was written
 * A verdict is its reason and what is done; "Lost" is the word of both callers for a lost place. */
/* clang-format off */
static const struct test_stories_story stories[] = {
        /* ends */
        { "a job whose ranks all end well has succeeded", { 0 }, "run 2; good", "Completed/succeeded 0" },
        { "one that ends in its first second has, too", { 0 }, "good", "Completed/succeeded 0" },
        { "mpirun's good end waits for the last words of the ranks", { 0 }, "run 2; end 0; wait 0", "" },
        { "but not for ever", { 0 }, "run 2; end 0; wait 2", "Completed/succeeded 0" },
        { "a rank that failed is not made good by mpirun's good end", { 0 }, "run 2; exit 1 7; end 0; wait 1", "RankFailed/failed 7" },
        { "a rank's code is the job's when nothing is repaired", { 0 }, "run 2; exit 1 7; wait 1", "RankFailed/failed 7" },
        { "so is the signal that killed it", { 0 }, "run 2; exit 3 137; wait 1", "RankKilled/failed 137" },
        { "mpirun may speak first: the rank's words come in time", { 0 }, "run 2; end 7; wait 0; exit 2 7; wait 1", "RankFailed/failed 7" },
        { "mpirun that fails alone is a fault of the world", { 0 }, "run 2; end 1; wait 2", "WorldFailed/failed 1" },
#include "job/world/test_stories_launcher.h"
        { "that is repaired", { .restarts = 1 }, "run 2; end 137; wait 2; run 1", "WorldFailed/restart start Resumed" },
        { "mpirun that is not there would not be there again", { .restarts = 3 }, "end 127; wait 2", "WorldFailed/failed 127" },
        { "of two ranks the one that failed first is named", { 0 }, "run 1; exit 2 9; exit 0 8; wait 1", "RankFailed/failed 9" },
        { "a killed rank is named, be it heard of later than whom it took along", { 0 }, "run 1; exit 0 1; wait 0.75; exit 3 137; wait 0.25", "RankKilled/failed 137" },
        { "ranks that end well one after the other are waited for", { 0 }, "run 1; exit 0 0; wait 4; exit 1 0; exit 2 0; wait 4; exit 3 0; end 0; wait 1", "Completed/succeeded 0" },
        /* final codes */
        { "wrong options are refused again", { .restarts = 3 }, "exit 0 2; wait 1", "RankFailed/failed 2" },
        { "data that is missing is missing again", { .restarts = 3 }, "exit 0 3; wait 1", "RankFailed/failed 3" },
        { "what is not allowed is not allowed again", { .restarts = 3 }, "exit 0 5; wait 1", "RankFailed/failed 5" },
        { "a program that cannot be executed never can", { .restarts = 3 }, "exit 0 126; wait 1", "RankFailed/failed 126" },
        { "nor one that is not there", { .restarts = 3 }, "exit 0 127; wait 1", "RankFailed/failed 127" },
        { "an exit code of its own is repaired", { .restarts = 3 }, "exit 0 4; run 2", "RankFailed/restart start Resumed" },
        { "running out of time is, too", { .restarts = 1 }, "exit 0 124; run 2", "RankFailed/restart start Resumed" },
        /* restarts */
        { "a killed rank is repaired", { .restarts = 1 }, "run 2; exit 1 137; run 2; good", "RankKilled/restart start Resumed Completed/succeeded 0" },
        { "as often as allowed", { .restarts = 2 }, "run 1; exit 1 137; run 2; exit 1 137; run 2; exit 1 137; wait 1",
          "RankKilled/restart start Resumed RankKilled/restart start Resumed RankKilled/failed 137" },
        { "what fails at once again and again is repaired at once three times", { .restarts = 1000 },
          "exit 1 1; run 2; exit 1 1; run 2; exit 1 1; run 2; exit 1 1; run 1.5",
          "RankFailed/restart start Resumed RankFailed/restart start Resumed RankFailed/restart start Resumed RankFailed/restart" },
        { "then after a second, and at once when it ran for a minute", { .restarts = 1000 },
          "exit 1 1; run 2; exit 1 1; run 2; exit 1 1; run 2; exit 1 1; run 63; exit 1 1; run 1.5",
          "RankFailed/restart start Resumed RankFailed/restart start Resumed RankFailed/restart start Resumed RankFailed/restart start Resumed RankFailed/restart start Resumed" },
        { "each fault counts, whatever it is", { .restarts = 1 }, "run 1; exit 1 1; run 2; end 1; wait 2", "RankFailed/restart start Resumed WorldFailed/failed 1" },
        { "a job without checkpoints begins again where it may", { .restarts = 1, .no_checkpoints = true }, "run 1; exit 1 1; run 2", "RankFailed/restart start Resumed" },
        { "a rank that fails before its first step is repaired", { .restarts = 1 }, "exit 1 1; run 2", "RankFailed/restart start Resumed" },
        { "training goes on once every worker has made a step", { .restarts = 1 }, "run 1; exit 1 1; wait 1; mute 2; run 3", "RankFailed/restart start" },
        { "what a rank of the last world said counts no more", { .restarts = 1 }, "run 1; exit 1 1; mute all; wait 1; good", "RankFailed/restart start Completed/succeeded 0" },
        /* hangs */
        { "ranks that are silent too long hang", { .restarts = 1 }, "run 3; mute all; run 11; run 1", "RankHung/restart start Resumed" },
        { "not before", { .restarts = 1 }, "run 3; mute all; run 9", "" },
        { "five usual steps are waited for, however long they are", { .hang = 4 }, "paced 3; paced 3; paced 3; paced 3; wait 10", "" },
        { "and no more", { .hang = 4 }, "paced 3; paced 3; paced 3; paced 3; wait 16", "RankHung/failed 1" },
        { "a hang without restarts ends the job", { 0 }, "run 3; mute all; run 11", "RankHung/failed 1" },
        { "one that never makes a step hangs after five times as long", { .hang = 2 }, "mute all; run 9; run 2", "RankHung/failed 1" },
        { "if its program is known to report", { .hang = 2, .silent = true }, "mute all; run 60", "" },
        { "a program that reports all the same is judged", { .hang = 2, .silent = true }, "run 3; mute all; run 3", "RankHung/failed 1" },
        { "evaluation after the last step is no hang", { .hang = 2, .last_step = 12 }, "run 3; run 1; mute all; run 30", "" },
        { "a rank that says the same step evaluates: it is waited for", { .hang = 2 }, "run 3; mute all; talk 1; run 30", "" },
        { "ranks that have ended do not hang", { .hang = 2 }, "run 3; exit 0 0; exit 1 0; exit 2 0; exit 3 0; wait 10", "" },
        { "a stopped rank hangs whether or not it reports", { .hang = 2, .silent = true }, "mute all; stop 2; run 1; run 2", "RankHung/failed 1" },
        { "one that goes on in time does not", { .hang = 2, .silent = true }, "mute all; stop 2; run 1; cont 2; run 20", "" },
        { "the others wait for the stopped one, which is named", { .hang = 5 }, "run 3; mute all; run 3; stop 3; run 3", "RankHung/failed 1" },
        { "so is one that is stuck in the kernel", { .hang = 5 }, "run 3; mute all; stuck 3; run 6", "RankHung/failed 1" },
        { "which is no hang while steps are made", { .hang = 2 }, "run 2; stuck 3; run 10", "" },
        { "a rank that hangs again in the new world is seen again", { .restarts = 1, .hang = 2 }, "run 2; mute all; run 3; mute all; run 11", "RankHung/restart start Resumed RankHung/failed 1" },
        /* stragglers */
        { "a rank that is twice as slow for seconds is named, once", { 0 }, "slow 2 2; run 8; run 30", "Straggler" },
        { "a slow moment is not", { 0 }, "run 3; slow 2 3; run 1; slow 2 1; run 20", "" },
        { "nor one that is a little slower", { 0 }, "slow 2 1.2; run 40", "" },
        { "it gets a smaller share where shares follow speeds", { .recut = true, .saved = true }, "slow 2 3; run 8; slow 2 1; run 1", "Straggler Resharding/reshard start Resumed" },
        { "not before there is a checkpoint", { .recut = true }, "slow 2 3; run 20", "Straggler" },
        { "but as soon as there is", { .recut = true }, "slow 2 3; run 20; saved; run 1", "Straggler Resharding/reshard start Resumed" },
        { "equal shares and stages of a split stay", { .saved = true }, "slow 2 3; run 20", "Straggler" },
        { "a rank that has become fast again keeps its share: a gain of less than a tenth is not worth a new world", { .recut = true }, "slow 2 3; run 8; slow 2 1; run 10; saved; run 5", "Straggler" },
        { "new shares use up no restart", { .recut = true, .saved = true, .restarts = 1 }, "slow 2 3; run 8; slow 2 1; run 1; exit 0 137; run 2",
          "Straggler Resharding/reshard start Resumed RankKilled/restart start Resumed" },
        { "nor are they a repair of a job that has none", { .recut = true, .saved = true }, "slow 2 3; run 8; slow 2 1; run 1; exit 0 137; wait 1",
          "Straggler Resharding/reshard start Resumed RankKilled/failed 137" },
        { "after new shares there is a pause of ten seconds", { .recut = true, .saved = true }, "slow 2 3; run 8; run 6", "Straggler Resharding/reshard start Resumed Straggler" },
        { "then they may be cut anew again", { .recut = true, .saved = true }, "slow 2 3; run 8; run 10", "Straggler Resharding/reshard start Resumed Straggler Resharding/reshard start Resumed" },
        /* lost places */
        { "without a spare place a job of fixed size ends", { .restarts = 1 }, "run 2; sick 2; wait 1", "Lost/restart NoSpareChip/failed 1" },
        { "a range goes on with fewer", { .restarts = 1, .min = 2 }, "run 2; sick 2; run 1", "Lost/restart leave-out start Resumed" },
        { "a spare place is used", { .restarts = 1, .spare = true }, "run 2; sick 2; run 1", "Lost/restart move start Resumed" },
        { "also where fewer would do", { .restarts = 1, .spare = true, .min = 2 }, "run 2; sick 2; run 1", "Lost/restart move start Resumed" },
        { "a job that may not migrate uses none: it ends", { .restarts = 1, .spare = true, .stay = true }, "run 2; sick 2; wait 1", "Lost/restart Lost/failed 1" },
        { "or goes on with fewer", { .restarts = 1, .spare = true, .stay = true, .min = 2 }, "run 2; sick 2; run 1", "Lost/restart leave-out start Resumed" },
        { "a lost place is a fault like any other", { .spare = true }, "run 2; sick 2; wait 1", "Lost/failed 1" },
        { "a node that is lost takes its place with it", { .restarts = 1, .min = 2 }, "run 2; node 3; run 1", "Lost/restart leave-out start Resumed" },
        { "a place that is gone, too", { .restarts = 1, .min = 2 }, "run 2; gone 0; run 1", "Lost/restart leave-out start Resumed" },
        { "it may come back while the last world is being ended", { .restarts = 1, .stubborn = true }, "run 2; gone 2; wait 1; back 2; end 137; halt; run 1", "Lost/restart start Resumed" },
        { "lost places are waited for before the job does without them", { .restarts = 1, .min = 2, .patience = 5 }, "run 2; gone 2; wait 4", "Lost/restart" },
        { "and come back in that time", { .restarts = 1, .min = 2, .patience = 5 }, "run 2; gone 2; wait 4; back 2; run 1", "Lost/restart start Resumed" },
        { "or do not", { .restarts = 1, .min = 2, .patience = 5 }, "run 2; gone 2; wait 6; run 1", "Lost/restart leave-out start Resumed" },
        { "or too many do not", { .restarts = 1, .patience = 5 }, "run 2; gone 2; wait 6", "Lost/restart NoSpareChip/failed 1" },
        { "a spare place is not waited for", { .restarts = 1, .patience = 60, .spare = true }, "run 2; gone 2; run 1", "Lost/restart move start Resumed" },
        { "a lost place explains the ranks that failed with it", { .restarts = 1, .min = 2 }, "run 2; exit 2 1; wait 0.75; sick 2; run 1", "Lost/restart leave-out start Resumed" },
        { "a place that is found lost after a fault is left out, too", { .restarts = 1, .min = 2, .stubborn = true }, "run 2; exit 2 1; wait 1; sick 2; end 137; halt; run 1", "RankFailed/restart Lost leave-out start Resumed" },
        { "what is lost after a good end is not missed", { 0 }, "run 2; end 0; gone 2; wait 2", "Lost Completed/succeeded 0" },
        { "a world is not begun before the last one has ended", { .restarts = 1, .stubborn = true }, "run 2; exit 1 1; wait 30", "RankFailed/restart" },
        { "then it is", { .restarts = 1, .stubborn = true }, "run 2; exit 1 1; wait 2; end 137; halt; run 1", "RankFailed/restart start Resumed" },
        { "a place that is lost with all its chips ends the smallest range", { .restarts = 1, .min = 4 }, "run 2; node 0; wait 1", "Lost/restart NoSpareChip/failed 1" },
        /* asked to end */
        { "a cancelled job gives its ranks time for a checkpoint", { .restarts = 3 }, "run 2; cancel 2; wait 2", "Cancelling/terminate" },
        { "and ends when they have", { .restarts = 3 }, "run 2; cancel 2; wait 1; obey; wait 0", "Cancelling/terminate Interrupted/cancelled 130" },
        { "or when their time is over", { .restarts = 3 }, "run 2; cancel 15; wait 4", "Cancelling/terminate Interrupted/cancelled 143" },
        { "whatever code they end with", { .restarts = 3 }, "run 2; cancel 15; exit 1 1; exit 0 7; exit 2 2; exit 3 0; wait 0", "Cancelling/terminate Interrupted/cancelled 143" },
        { "also when mpirun goes first", { .restarts = 3 }, "run 2; cancel 2; wait 0; end 1; wait 0", "Cancelling/terminate Interrupted/cancelled 130" },
        { "or has gone already", { .restarts = 3 }, "run 2; end 1; cancel 2; wait 0", "Interrupted/cancelled 130" },
        { "a second signal changes nothing", { 0 }, "run 2; cancel 2; wait 1; cancel 2; wait 1", "Cancelling/terminate" },
        { "cancelled while it is repaired, it ends at once", { .restarts = 3, .stubborn = true }, "run 2; exit 1 1; wait 1; cancel 2; wait 0", "RankFailed/restart Interrupted/cancelled 130" },
        { "a place that is asked to end gives all ranks time for a checkpoint", { .restarts = 1, .min = 2 }, "run 2; leave 2; wait 2", "terminate" },
        { "then the job goes on without it", { .restarts = 1, .min = 2 }, "run 2; leave 2; wait 1; obey; run 1", "terminate Evicted/restart leave-out start Resumed" },
        { "or when their time is over", { .restarts = 1, .min = 2 }, "run 2; leave 2; wait 4; run 1", "terminate Evicted/restart leave-out start Resumed" },
        { "or elsewhere", { .restarts = 1, .spare = true }, "run 2; leave 2; obey; run 1", "terminate Evicted/restart move start Resumed" },
        { "or ends", { 0 }, "run 2; leave 2; obey; wait 0", "terminate Evicted/failed 143" },
        { "that it has left by then is no second fault", { .restarts = 1, .min = 2 }, "run 2; leave 2; wait 0; left 2; obey; run 1", "terminate Evicted/restart Lost leave-out start Resumed" },
        { "a job that is cancelled meanwhile is cancelled", { .restarts = 1, .min = 2 }, "run 2; leave 2; wait 1; cancel 15; obey; wait 0", "terminate Interrupted/cancelled 143" },
};
/* clang-format on */
