package dunlin;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Replies in the shapes in which they are used. */
final class Reply {
    private Reply() {}

    static List<String> texts(Object reply) {
        return ((List<?>) reply).stream().map(String::valueOf).toList();
    }

    /** A reply of maps, which RESP2 writes as flat lists. */
    static List<Map<String, Object>> maps(Object reply) {
        List<Map<String, Object>> maps = new ArrayList<>();
        for (Object each : (List<?>) reply) {
            List<?> flat = (List<?>) each;
            Map<String, Object> map = new LinkedHashMap<>();
            for (int place = 0; place + 1 < flat.size(); place += 2) {
                map.put((String) flat.get(place), flat.get(place + 1));
            }
            maps.add(map);
        }
        return maps;
    }
}
