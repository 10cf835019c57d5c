# shellcheck shell=bash
# Sourced by process 1 of a virtual cluster, in namespaces of its own: the switch, and the
# cables and addresses of the hosts n0, n1, ...
readonly network=10.99.0

# connect_host NUMBER RATE
connect_host() {
  local host=n$1 rate=$2
  local -r shape=(root tbf rate "$rate" burst 256k latency 50ms)
  ip netns add "$host"
  ip link add "$host" type veth peer name eth0 netns "$host"
  ip link set "$host" master switch up
  ip -n "$host" addr add "$network.$(($1 + 1))/24" dev eth0
  ip -n "$host" link set eth0 up
  ip -n "$host" link set lo up
  [[ -n $rate ]] || return 0
  tc qdisc add dev "$host" "${shape[@]}"
  tc -n "$host" qdisc add dev eth0 "${shape[@]}"
}

# build_network HOSTS RATE: an empty rate is the machine's own.
build_network() {
  local host
  ip link set lo up
  ip link add switch type bridge
  ip addr add "$network.254/24" dev switch
  ip link set switch up
  {
    echo "127.0.0.1 localhost"
    echo "$network.254 head"
  } >/run/etc-hosts
  for ((host = 0; host < $1; host++)); do
    connect_host "$host" "$2"
    echo "$network.$((host + 1)) n$host" >>/run/etc-hosts
  done
  mount --bind /run/etc-hosts /etc/hosts
}

# What Open MPI is told. The hosts share this machine's cores, so ranks are bound to none of
# them and yield when idle.
set_up_open_mpi() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
  export OMPI_MCA_oob_tcp_if_include=$network.0/24 OMPI_MCA_btl_tcp_if_include=$network.0/24
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp
}
