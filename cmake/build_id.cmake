# The build's identity: a digest of every source the compiler is made of. It is part of each cache
# key, so a changed compiler never meets an old entry. No date, no path, no host name.
file(GLOB_RECURSE files RELATIVE ${SRC} ${SRC}/runtime/*.[chly] ${SRC}/runtime/*.def
    ${SRC}/codegen/*.[chly] ${SRC}/codegen/*.def ${SRC}/codegen/*.xml ${SRC}/codegen/*.rng
    ${SRC}/ir/*.[chly] ${SRC}/ir/*.def ${SRC}/lower/*.[chly] ${SRC}/lower/*.def
    ${SRC}/kernels/*.[chly] ${SRC}/frontend/*.[chly] ${SRC}/frontend/*.def)
list(SORT files)
set(all "")
foreach(f ${files})
    file(SHA256 ${SRC}/${f} h)
    string(APPEND all "${f} ${h}\n")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 32 id)
set(text "#define CPS_BUILD_ID \"${id}\"\n")
set(old "")
if(EXISTS ${OUT})
    file(READ ${OUT} old)
endif()
if(NOT old STREQUAL text)
    file(WRITE ${OUT} "${text}")
endif()
