/* Threads and interruption: a part of native kernels that is the same for all. */

/* Whether a loop that may be long is to end, where somebody can tell. */
int (*pg_stop)(void);

/* Groups of blocks one after the other, or in threads where there are some; what a failure says. */
int (*pg_crew)(int (*)(void *const *, char *, long), void *const *, char *, long, long);

int pg_share(int (*group)(void *const *, char *, long), void *const *arrays, char *arena,
             long groups, long bytes) {
    int failed = 0;
    if (pg_crew) return pg_crew(group, arrays, arena, groups, bytes);
    for (long g = 0; g < groups && !failed; g++) failed = group(arrays, arena, g);
    return failed;
}
